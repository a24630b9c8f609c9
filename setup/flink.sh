#!/bin/sh
# Brings Beam's job server and a standalone Flink: for tests, and for small clusters.
#
#   setup/flink.sh start ROLE...   job-server, job-manager or task-manager, in the
#                                  background; a task manager for each time it is named
#   setup/flink.sh status          what runs here, and the job manager's slots
#   setup/flink.sh stop            ends all that was started here
#
# FLINK_HOST      address of the job manager (default 127.0.0.1: of this machine only)
# FLINK_PORT      its port for clients (8081); the next one is for task managers
# FLINK_JOB_PORT  of the job server, on 127.0.0.1 (8099)
# FLINK_SLOTS     slots of each task manager: tasks at a time (number of cores)
# FLINK_DIR       folder for logs and process ids (.flink in this folder)
#
# It needs Java 11 or 17, and Maven the first time. All versions are pinned in
# setup/flink/pom.xml; both TFX versions use the same.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."

host=${FLINK_HOST:-127.0.0.1}
port=${FLINK_PORT:-8081}
job_port=${FLINK_JOB_PORT:-8099}
dir=${FLINK_DIR:-.flink}
jars=.flink/lib-$(sha256sum setup/flink/pom.xml | cut -c 1-12)
# Beam sends its class path to Flink with each job, 150 MB in 10 to 20 s, without what has
# these words in its path (isStageable in its PipelineResources).
unsent=$jars/gradle/wrapper/gradle-wrapper.jar

main() {
    action=${1:-}
    [ $# = 0 ] || shift
    case $action in
    start) start "$@" ;;
    status) show ;;
    stop) stop ;;
    *)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' setup/flink.sh >&2
        exit 2
        ;;
    esac
}

start() {
    for role in "$@"; do
        case $role in
        job-server | job-manager | task-manager) ;;
        *) die "there is no role $role, only job-server, job-manager and task-manager" ;;
        esac
    done
    provide_jars
    write_conf
    started=
    roles="$* $(echo "$dir"/*.pid)"
    for role in "$@"; do
        start_"$(echo "$role" | tr - _)"
    done
    for name in $started; do
        wait_for "$name"
    done
}

start_job_server() {
    # A Flink that is started here has the jars; another needs them.
    case $roles in *job-manager*) classes=$unsent ;; esac
    java_in_background job-server -Xmx1g \
        org.apache.beam.runners.flink.FlinkJobServerDriver \
        --flink-master='[auto]' --flink-conf-dir="$dir/job-server" \
        --job-host=127.0.0.1 --job-port="$job_port" --artifact-port=0 \
        --expansion-port=0 --artifacts-dir="$dir/artifacts"
    classes=
}

start_job_manager() {
    java_in_background job-manager -Xmx1g \
        org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint \
        --configDir "$dir"
}

start_task_manager() {
    java_in_background task-manager -Xmx896m -XX:MaxDirectMemorySize=640m \
        org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir "$dir"
}

provide_jars() {
    [ ! -d "$jars" ] || return 0
    command -v mvn >/dev/null || die "Maven is not installed: apt-get install maven"
    echo "Fetching Beam's job server and Flink, about 150 MB." >&2
    rm -rf "$jars.part"
    mvn --quiet --batch-mode --file setup/flink/pom.xml dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$PWD/$jars.part" >&2 ||
        die "Maven could not fetch it"
    mkdir -p "$jars.part/${unsent#"$jars/"}"
    ln "$jars.part"/*.jar "$jars.part/${unsent#"$jars/"}"
    mv "$jars.part" "$jars"
}

# Of blocking shuffles each partition wants 512 buffers by default, more than a small task
# manager has. A job without slots fails after 5 minutes by default, one that has lost a
# task or job manager after a minute. Where jobs bring jars, they are here already: loaded
# anew for each, their code would be compiled anew. A task manager that has just started may
# not take its first tasks within the default of 10 s.
write_conf() {
    mkdir -p "$dir/job-server"
    cat >"$dir/job-server/config.yaml" <<END
taskmanager.memory.network.min: 256m
taskmanager.memory.network.max: 256m
taskmanager.network.sort-shuffle.min-buffers: 64
slot.request.timeout: 30000
rest.retry.max-attempts: 5
END
    cat "$dir/job-server/config.yaml" - >"$dir/config.yaml" <<END
jobmanager.rpc.address: $host
jobmanager.rpc.port: $((port + 1))
jobmanager.memory.process.size: 1600m
rest.address: $host
rest.port: $port
taskmanager.numberOfTaskSlots: ${FLINK_SLOTS:-$(nproc)}
taskmanager.cpu.cores: ${FLINK_SLOTS:-$(nproc)}
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.task.heap.size: 640m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.managed.size: 256m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 192m
taskmanager.memory.jvm-overhead.max: 192m
classloader.resolve-order: parent-first
heartbeat.interval: 5000
heartbeat.timeout: 20000
pekko.ask.timeout: 60 s
END
    [ "$host" != 127.0.0.1 ] || cat >>"$dir/config.yaml" <<END
jobmanager.bind-host: $host
taskmanager.bind-host: $host
taskmanager.host: $host
rest.bind-address: $host
END
}

# What Flink's own scripts open for Java 17.
opens() {
    for package in java.lang java.net java.io java.nio java.lang.reflect java.text \
        java.time java.util java.util.concurrent java.util.concurrent.atomic \
        java.util.concurrent.locks sun.nio.ch; do
        echo "--add-opens=java.base/$package=ALL-UNNAMED"
    done
    echo "--add-exports=java.base/sun.net.util=ALL-UNNAMED"
}

java_in_background() {
    command -v java >/dev/null || die "Java is not installed: apt-get install default-jre-headless"
    name=$1
    shift
    number=1
    while [ -e "$dir/$name-$number.pid" ]; do number=$((number + 1)); done
    # shellcheck disable=SC2046
    setsid java $(opens) -Dorg.slf4j.simpleLogger.showDateTime=true \
        -Dorg.slf4j.simpleLogger.dateTimeFormat='yyyy-MM-dd HH:mm:ss' \
        -cp "${classes:-$jars}/*" "$@" >"$dir/$name-$number.log" 2>&1 </dev/null &
    echo $! >"$dir/$name-$number.pid"
    started="$started $name-$number"
}

wait_for() {
    ready='JobService started|Rest endpoint listening|Successful registration at res'
    for _ in $(seq 120); do
        sleep 0.5
        runs "$dir/$1.pid" || die "the $1 has ended, see $dir/$1.log"
        if grep -qE "$ready" "$dir/$1.log"; then return; fi
    done
    die "the $1 is not ready after a minute, see $dir/$1.log"
}

show() {
    for file in "$dir"/*.pid; do
        [ -e "$file" ] || { echo "nothing was started here"; return; }
        name=$(basename "$file" .pid) pid=$(cat "$file") state=runs
        runs "$file" || state="has ended, see ${file%.pid}.log"
        echo "$name (process $pid) $state"
    done
    if command -v curl >/dev/null && [ -e "$dir/job-manager-1.pid" ]; then
        curl --silent --show-error --max-time 10 "http://$host:$port/overview" && echo
    fi
}

# Whether the process is still ours: ids are used again after a restart.
runs() {
    grep -qsz "$jars" "/proc/$(cat "$1")/cmdline"
}

stop() {
    for file in "$dir"/*.pid; do
        [ -e "$file" ] || return 0
        if runs "$file"; then
            kill "$(cat "$file")"
            for _ in $(seq 100); do
                runs "$file" || break
                sleep 0.1
            done
            ! runs "$file" || kill -KILL "$(cat "$file")"
        fi
        rm "$file"
    done
}

die() {
    echo "flink.sh: $1" >&2
    exit 2
}

main "$@"
