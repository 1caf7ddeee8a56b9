# fish completion for berth
function __berth_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l word (commandline --current-token --cut-at-cursor)
    for candidate in (timeout 5 $words[1] complete -- $words[2..-1] "$word" 2>/dev/null)
        switch $candidate
            case :files
                __fish_complete_path "$word"
            case :commands
                __fish_complete_command
            case '*'
                echo $candidate
        end
    end
end
complete --command berth --no-files --arguments '(__berth_complete)'
