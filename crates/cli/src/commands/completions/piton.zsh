#compdef piton
# Completions of piton for zsh, from `piton completions zsh`.
_piton() {
    local line word
    local -a values
    for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case "$line" in
            "") ;;
            :files) _files ;;
            :folders) _files -/ ;;
            *$'\t'*) word="${line%%$'\t'*}"; values+=("${word//:/\\:}:${line#*$'\t'}") ;;
            *) values+=("${line//:/\\:}") ;;
        esac
    done
    (( ${#values} )) && _describe -V piton values
}
if [ "$funcstack[1]" = "_piton" ]; then
    _piton "$@"
else
    compdef _piton piton
fi
