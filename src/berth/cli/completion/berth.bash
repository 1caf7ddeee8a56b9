# bash completion for berth
_berth() {
  local line=${COMP_LINE:0:COMP_POINT} word before candidate
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] || ${#words[@]} -lt 2 ]] && words+=("")
  word=${words[-1]}
  # Bash breaks words at = and @ too, and replaces what stands behind the last break alone.
  before=${word%"${COMP_WORDS[COMP_CWORD]}"}
  [[ ${COMP_WORDS[COMP_CWORD]} == "=" ]] && before=$word
  COMPREPLY=()
  while IFS= read -r candidate; do
    case $candidate in
      :files) compopt -o filenames && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${word#"$before"}") ;;
      :commands) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$word") ;;
      *)
        candidate=${candidate%%$'\t'*}
        COMPREPLY+=("${candidate#"$before"}")
        ;;
    esac
  done < <(timeout 5 "${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
}
complete -F _berth berth
