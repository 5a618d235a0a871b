# Completions of piton for bash, from `piton completions bash`.
_piton() {
    local cur line word about
    local -a words values abouts
    # The words as they were typed: bash takes a colon for the end of one.
    read -r -a words <<< "${COMP_LINE:0:COMP_POINT}"
    [[ "${COMP_LINE:0:COMP_POINT}" == *[[:space:]] ]] && words+=("")
    cur="${words[${#words[@]}-1]}"
    COMPREPLY=()
    while IFS= read -r line; do
        word="${line%%$'\t'*}"
        about=""
        [[ "$line" == *$'\t'* ]] && about="${line#*$'\t'}"
        case "$word" in
            :files) compopt -o filenames; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X '.git' -- "$cur") ;;
            :folders) compopt -o filenames; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$cur") ;;
            *)
                # What is before a colon stays as it is.
                [[ "$cur" == *:* && "$COMP_WORDBREAKS" == *:* ]] && word="${word#"${cur%:*}:"}"
                values+=("$(printf '%q' "$word")")
                abouts+=("$about")
                ;;
        esac
    done < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
    if (( ${#values[@]} == 1 )) || [[ "$COMP_TYPE" != 63 ]]; then
        COMPREPLY+=("${values[@]}")
        return
    fi
    # Where bash lists them, each has what it means beside it.
    local at
    for at in "${!values[@]}"; do
        COMPREPLY+=("${values[at]}${abouts[at]:+  (${abouts[at]})}")
    done
    compopt -o nosort 2>/dev/null
}
complete -F _piton piton
