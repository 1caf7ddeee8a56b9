#compdef berth
_berth() {
  local candidate files programs
  local -a described plain
  while IFS= read -r candidate; do
    case $candidate in
      :files) files=1 ;;
      :commands) programs=1 ;;
      *$'\t'*) described+=("${${candidate%%$'\t'*}//:/\\:}:${candidate#*$'\t'}") ;;
      *) plain+=("$candidate") ;;
    esac
  done < <(timeout 5 $words[1] complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#described )) && _describe berth described
  (( $#plain )) && compadd -- $plain
  [[ -n $programs ]] && compadd -- ${(k)commands}
  [[ -n $files ]] && _files
  return 0
}
if [[ $funcstack[1] == _berth ]]; then
  _berth "$@"
else
  compdef _berth berth
fi
