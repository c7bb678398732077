"""Scripts for Tab completion in bash, zsh and fish, which ask `ner-experiments completion query LINE` at each Tab."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

SHELLS = ("bash", "zsh", "fish")
QUERY = "query"
ROOT = Path(__file__).parents[2]

BASH = """\
_ner_experiments() {
    local line="${COMP_LINE:0:$COMP_POINT}" current="${COMP_WORDS[COMP_CWORD]}" word prefix each
    [[ $current == = || $current == : ]] && current=
    word="${line##* }"
    prefix="${word%"$current"}"  # bash takes what follows = for a word of its own
    COMPREPLY=()
    while IFS= read -r each; do COMPREPLY+=("${each#"$prefix"}"); done < <(QUERY "$line" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=./] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _ner_experiments NAMES
"""
ZSH = """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u; }
_ner_experiments() {
    local -a found
    found=("${(@f)$(QUERY "${BUFFER[1,CURSOR]}" 2>/dev/null)}")
    found=(${found:#})
    if (( ! $#found )); then _files; return; fi
    compadd -Q -S '' -- ${(M)found:#*[=./]}
    compadd -Q -- ${found:#*[=./]}
}
compdef _ner_experiments NAMES
"""
FISH = """\
function __ner_experiments
    QUERY (commandline -cp) 2>/dev/null
end
function __ner_experiments_has
    set -l found (__ner_experiments)
    test (count $found) -gt 0
end
"""
FISH_NAME = "complete -c {name} -n __ner_experiments_has -f -a '(__ner_experiments)'\n"


def script(shell: str, names: Sequence[str]) -> str:
    """Shell code that sets up completion for the commands of these names. ValueError for another shell."""
    if shell not in SHELLS:
        raise ValueError(f"completion: there is no {shell!r}; there are: {', '.join(SHELLS)}")
    program = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "ner_experiments", "completion", QUERY]
    text = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell]
    if shell == "fish":
        text += "".join(FISH_NAME.format(name=name) for name in names)
    return text.replace("QUERY", shlex.join(program)).replace("NAMES", " ".join(names))
