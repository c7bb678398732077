#!/bin/bash
# Tries `hydra/launcher=slurm` on the SLURM of one node that tests/campaigns/slurm/start.sh starts: as root, some 15 minutes.
#   tests/campaigns/slurm/trial.sh [FOLDER]
# Runs and log go to FOLDER (outputs/slurm-trial), the log as trial.log; PYTHON says which Python (.venv/bin/python).
# Each step prints its commands and ends with what must be true; the first that is not ends the trial.
set -euo pipefail
cd "$(dirname "$0")/../../.."

OUT=${1:-outputs/slurm-trial}
PYTHON=${PYTHON:-.venv/bin/python}
TINY="data=toy_zh model.hidden_size=24 words.module.dim=16 trainer.patience=999 runtime.checkpoint_seconds=1"
export OMP_NUM_THREADS=1

main() {
    tests/campaigns/slurm/start.sh
    a_table_with_a_job_cancelled
    a_job_that_fails
    jobs_put_back
    a_time_limit
    a_sweep_that_is_killed
    a_sweep_inside_a_job
    two_processes_per_job
    a_partition_that_is_not_there
    title "all steps went as they should"
}

a_table_with_a_job_cancelled() {
    title "A table's sweep; one of its jobs is cancelled"
    sweep table table=yang2020_table11 'seeds=[1]' $TINY trainer.max_epochs=3
    until_state 1 RUNNING
    show squeue
    show scancel "$(array)_1"
    ends_with 1 table
    holds table.log "1 of 5 jobs failed"
    holds table.log "SLURM reports CANCELLED; no result was written"

    title "The same command again: the one run that is missing"
    sweep table table=yang2020_table11 'seeds=[1]' $TINY trainer.max_epochs=3
    ends_with 0 table
    holds table.log "1 runs to do, 4 finished"
    is "$(grep -c '^| .* (1) |' "$OUT/table.log")" 5
}

a_job_that_fails() {
    title "A job that fails: the corpus is not there"
    sweep fails data=toy_zh,conll2003 data_dir="$OUT/no-corpora" trainer.max_epochs=1
    ends_with 1 fails
    holds fails.log "conll2003: not found in"
}

jobs_put_back() {
    title "Jobs that are put back into the queue go on where they were"
    sweep back seed=1,2 $TINY trainer.max_epochs=120
    trained_until 0 5
    show scontrol requeue "$(array)_0"
    until_state 0 PENDING
    trained_until 1 10
    show sbatch --partition=high --exclusive --output=/dev/null --wrap "'sleep 5'" # preempts what runs in `low`
    ends_with 0 back
    went_on 0 120
    went_on 1 120
}

a_time_limit() {
    title "A run that is longer than its jobs' time limit"
    sweep limit seed=3 $TINY trainer.max_epochs=300 hydra.launcher.timeout_min=2 hydra.launcher.signal_delay_s=40
    ends_with 0 limit
    went_on 0 300

    title "Once too often"
    sweep often seed=4 $TINY trainer.max_epochs=2000 hydra.launcher.timeout_min=2 hydra.launcher.signal_delay_s=40 \
        hydra.launcher.max_num_timeout=0
    ends_with 1 often
    holds often.log "timed-out too many times"
}

a_sweep_that_is_killed() {
    title "The sweep's command is killed; its jobs go on"
    sweep killed seed=5,6,7 $TINY trainer.max_epochs=120
    trained_until 1 2
    show kill -9 "$SWEEP"
    ends_with 137 killed
    show squeue
    sweep killed seed=5,6,7 $TINY trainer.max_epochs=120
    ends_with 0 killed
}

a_sweep_inside_a_job() {
    title "A sweep that is itself a job, from which its jobs must not inherit"
    # as srun sets where memory is counted: with the jobs' own --mem it would be fatal to them
    WITHIN="srun env SLURM_MEM_PER_CPU=400" sweep inside seed=10,11 $TINY trainer.max_epochs=2 hydra.launcher.mem_gb=0.5
    ends_with 0 inside
}

two_processes_per_job() {
    title "Two processes train one model"
    sweep ddp trainer=ddp runtime.accelerator=cpu seed=1 $TINY trainer.max_epochs=60 hydra.launcher.tasks_per_node=2
    trained_until 0 20
    show scontrol requeue "$(array)"
    ends_with 0 ddp
    went_on 0 60
}

a_partition_that_is_not_there() {
    title "What SLURM refuses"
    sweep refused seed=12 $TINY hydra.launcher.partition=fast
    ends_with 1 refused
}

title() {
    printf '\n== %s\n' "$*"
}

show() {
    printf '$ %s\n' "$*"
    eval "$@"
}

sweep() { # a name for its log, then overrides; starts it, and leaves its process in SWEEP
    local name=$1
    shift
    set -- python run.py -m hydra/launcher=slurm "$@" output_dir="$OUT"
    printf '$ %s\n' "${WITHIN:+$WITHIN }$*"
    shift
    : >"$OUT/$name.log"
    ${WITHIN:-} "$PYTHON" "$@" >"$OUT/$name.log" 2>&1 &
    SWEEP=$!
    LOG=$OUT/$name.log
    for _ in $(seq 60); do
        if grep -q "^slurm: job" "$LOG" || ! kill -0 $SWEEP 2>/dev/null; then return; fi
        sleep 0.5
    done
}

ends_with() { # the exit status that it must have, and its log's name
    local status=0
    wait "$SWEEP" || status=$?
    cat "$OUT/$2.log"
    echo "exit status $status"
    is "$status" "$1"
}

array() {
    sed -n 's/^slurm: job \([0-9]*\),.*/\1/p' "$LOG" | head -n 1
}

until_state() { # of the task with this index
    for _ in $(seq 120); do
        if squeue --jobs="$(array)" --array --noheader --format="%i %T" | grep -qx "$(array)_$1 $2"; then return; fi
        sleep 0.5
    done
    failed "task $1 is not $2"
}

job_log() { # of the task with this index, or of a sweep of one job
    local name
    name=$(array)_$1
    [ -e "$OUT/slurm/${name}_0_log.out" ] || name=$(array)
    echo "$OUT/slurm/${name}_0_log.out"
}

trained_until() { # the task with this index has finished this epoch
    for _ in $(seq 1200); do
        if grep -q "epoch  *$2/" "$(job_log "$1")" 2>/dev/null; then return; fi
        kill -0 "$SWEEP" 2>/dev/null || break
        sleep 0.1
    done
    cat "$LOG"
    failed "task $1 does not get to epoch $2"
}

went_on() { # the task with this index, from a checkpoint, up to this epoch; it may have repeated some, not all
    local log
    log=$(job_log "$1")
    printf '(of the log of task %s)\n' "$1"
    grep -E "^submitit.*(Caught|Requeued)|DUE TO|resuming from" "$log" || failed "it was not put back"
    grep -q "resuming from last.ckpt" "$log" || failed "it began anew"
    sed -n 's/.* epoch *\([0-9]*\)\/.*/\1/p' "$log" >"$OUT/epochs"
    is "$(grep -cx 1 "$OUT/epochs")" 1
    sort -n -u "$OUT/epochs" | cmp - <(seq "$2") || failed "epochs are missing"
    echo "it trained the epochs 1 to $2, of which $(($(wc -l <"$OUT/epochs") - $2)) were repeated"
}

holds() {
    grep -qF "$2" "$OUT/$1" || failed "$1 does not say: $2"
}

is() {
    [ "$1" = "$2" ] || failed "got '$1' where '$2' was expected"
}

failed() {
    echo "tests/campaigns/slurm/trial.sh: $*"
    exit 1
}

mkdir -p "$OUT"
main 2>&1 | tee "$OUT/trial.log"
