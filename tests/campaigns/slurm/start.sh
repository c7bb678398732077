#!/bin/bash
# A SLURM of one node on this machine, to try the launcher on: Debian or Ubuntu, as root; systemd and cgroups are not needed.
# With NODES=2 two daemons of this machine are two nodes of one CPU, trial1 and trial2.
#   tests/campaigns/slurm/start.sh          installs what is missing, writes slurm.conf, starts what does not run; may be repeated
#   tests/campaigns/slurm/start.sh stop     ends the three daemons
# Two CPUs and two partitions: `low`, the default, whose jobs `high` preempts and requeues.
set -euo pipefail

CONF=/etc/slurm/slurm.conf
STATE=/var/lib/slurm-trial
NODES=${NODES:-1}
declare -A PID=([munged]=/run/munge/munged.pid [slurmctld]=$STATE/slurmctld.pid)
MARK="# Written by tests/campaigns/slurm/start.sh of ner_experiments."

main() {
    [ "$(id -u)" = 0 ] || fail "needs root"
    case "${1:-start}" in
    start) start ;;
    stop) stop ;;
    *) fail "usage: tests/campaigns/slurm/start.sh [start|stop]" ;;
    esac
}

fail() {
    echo "tests/campaigns/slurm/start.sh: $*" >&2
    exit 1
}

start() {
    [ ! -e $CONF ] || grep -qxF "$MARK" $CONF || fail "$CONF is another SLURM's; it is left alone"
    if ! { command -v slurmctld && command -v slurmd && command -v munged; } >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null
    fi
    mkdir -p $STATE/ctld
    write_conf >$CONF
    start_munge
    runs slurmctld || slurmctld
    wait_for "the controller" scontrol ping
    for node in $(nodes); do
        mkdir -p "$STATE/$node"
        running "$STATE/$node.pid" || slurmd -N "$node"
    done
    wait_for "a node" nodes_are_up
    sinfo
}

write_conf() {
    local host names cpus
    host=$(hostname -s)
    names=$(nodes | paste -s -d ,)
    cpus=$((2 / NODES))
    cat <<END
$MARK
ClusterName=trial
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
# a requeued job waits as long before it starts again; 120 seconds else
AuthInfo=cred_expire=5
StateSaveLocation=$STATE/ctld
SlurmdSpoolDir=$STATE/%n
SlurmdTimeout=20
SlurmctldPidFile=${PID[slurmctld]}
SlurmdPidFile=$STATE/%n.pid
SlurmctldLogFile=$STATE/slurmctld.log
SlurmdLogFile=$STATE/%n.log
# no cgroups: processes are followed by their parents
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
KillWait=20
# what has ended is forgotten soon, as on a cluster after some hours
MinJobAge=60
SchedulerParameters=bf_interval=5,sched_interval=5
PartitionName=low Nodes=$names Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=high Nodes=$names MaxTime=INFINITE PriorityTier=2 PreemptMode=OFF
END
    local port=17001
    for node in $(nodes); do
        echo "NodeName=$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$port CPUs=$cpus RealMemory=2000 State=UNKNOWN"
        port=$((port + 1))
    done
}

nodes() {
    if [ "$NODES" = 1 ]; then hostname -s; else seq -f trial%g "$NODES"; fi
}

start_munge() {
    [ -e /etc/munge/munge.key ] || fail "the package munge made no key"
    install -d -o munge -g munge -m 755 /run/munge
    install -d -o munge -g munge -m 700 /var/log/munge /var/lib/munge
    runs munged || runuser -u munge -- munged
    wait_for "munge" munge -n
}

runs() {
    running "${PID[$1]}"
}

running() { # the file with the number of the process
    [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null
}

nodes_are_up() {
    [ "$(sinfo --noheader --Node --partition=low --format=%T | grep -cxE "idle|mixed|allocated")" = "$NODES" ]
}

wait_for() { # what it is, then the command that succeeds when it answers
    local what=$1
    shift
    for _ in $(seq 30); do
        if "$@" &>/dev/null; then return; fi
        sleep 1
    done
    fail "$what does not answer; see $STATE/*.log"
}

stop() {
    local files=("$STATE"/*.pid "${PID[munged]}") file left
    for file in "${files[@]}"; do
        if running "$file"; then kill "$(cat "$file")"; fi
    done
    for _ in $(seq 30); do
        left=0
        for file in "${files[@]}"; do if running "$file"; then left=1; fi; done
        [ $left = 1 ] || return 0
        sleep 1
    done
    fail "the daemons do not end"
}

main "$@"
