# bash completion for reach; written by `reach completion bash`; do not edit

_reach() {
    local cur prev command index word values flags
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    # bash splits --option=value into three words
    if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W 'run exec check explain init doctor log schema version completion help --help --version' -- "$cur")
        return
    fi
    command=${COMP_WORDS[1]}
    case $command in
        run) values='-m -c --code-fd --contract --env --target --minimum --python --read --write --net --pass --command --limit --result' flags='- --stdin --save --locked --no-cache --no-record --audit -q --quiet -v --verbose -h --help' ;;
        exec) values='--script --contract --env --target --minimum --python --read --write --net --pass --command --limit --result' flags='--save --locked --no-cache --no-record --audit -q --quiet -v --verbose -h --help' ;;
        check) values='-m -c --code-fd --contract --env --target --minimum --python --read --write --net --pass --command --limit --result --format' flags='- --stdin --save --locked --no-cache --no-record --audit -q --quiet -v --verbose -h --help' ;;
        explain) values='-m -c --code-fd --contract --env --target --minimum --python --read --write --net --pass --command --limit --result' flags='- --stdin --save --locked --no-cache --no-record --audit -q --quiet -v --verbose --json -h --help' ;;
        init) values='--output' flags='-h --help' ;;
        doctor) values='' flags='--apparmor --json -h --help' ;;
        log) values='-n --count' flags='--json -h --help' ;;
        schema) values='' flags='-h --help' ;;
        version) values='' flags='--json -h --help' ;;
        completion) values='' flags='-h --help' ;;
        help) values='' flags='-h --help' ;;
        *) return ;;
    esac
    # Behind the program's name every word is the program's own.
    if [[ $command == @(run|exec|check|explain) ]]; then
        for ((index = 2; index < COMP_CWORD; index++)); do
            word=${COMP_WORDS[index]}
            case $word in
                --) ((index + 1 < COMP_CWORD)) && _reach_files && return ;;
                -m | -c | --code-fd | --script) ((index + 1 < COMP_CWORD)) && _reach_files && return ;;
                -) _reach_files && return ;;
                =) ;;
                -*) [[ " $values " == *" $word "* ]] && ((index++)) ;;
                *) [[ ${COMP_WORDS[index - 1]} == '=' ]] || { _reach_files && return; } ;;
            esac
        done
    fi
    case $prev in
        --contract) _reach_files && return ;;
        --minimum) mapfile -t COMPREPLY < <(compgen -W 'full reduced' -- "$cur") && return ;;
        --python) _reach_files && return ;;
        --read) _reach_files && return ;;
        --write) _reach_files && return ;;
        --command) mapfile -t COMPREPLY < <(compgen -c -- "$cur") && return ;;
        --result) _reach_files && return ;;
        --script) _reach_files && return ;;
        --format) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$cur") && return ;;
        --output) _reach_files && return ;;
    esac
    if [[ " $values " == *" $prev "* ]]; then return; fi
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$flags $values" -- "$cur")
        return
    fi
    case $command in
        run) _reach_files ;;
        exec) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
        check) _reach_files ;;
        explain) _reach_files ;;
        init) _reach_files ;;
        log) mapfile -t COMPREPLY < <(compgen -W 'verify' -- "$cur") ;;
        completion) mapfile -t COMPREPLY < <(compgen -W 'bash zsh fish' -- "$cur") ;;
        help) mapfile -t COMPREPLY < <(compgen -W 'run exec check explain init doctor log schema version completion help' -- "$cur") ;;
    esac
}

_reach_files() {
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return 0
}

complete -F _reach reach agent-reach-runtime
