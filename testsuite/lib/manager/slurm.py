# SPDX-License-Identifier: GPL-3.0-or-later
"""A Slurm of one node, this machine, with two CPUs and no control groups: its daemons run as the
user, with files and ports of their own, and are gone with what they have started at the end."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from lib.waiting import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo")
SYSTEM_PATH = "/usr/sbin:/sbin"  # daemons are there
START_S = 40

CONF = """
ClusterName=invasive
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
SchedulerParameters=sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 \
  ThreadsPerCore=1 RealMemory=100
PartitionName=p Nodes=ALL Default=YES MaxTime=10 State=UP
"""


def search_path():
    return f"{os.environ['PATH']}:{SYSTEM_PATH}"


def missing():
    """The programs of Slurm that are not installed."""
    return [name for name in PROGRAMS if not shutil.which(name, path=search_path())]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm:
    """A running Slurm; its commands need the environment `env`."""

    def __init__(self, directory, env):
        self.directory = Path(directory)
        self.conf = self.directory / "slurm.conf"
        self.env = {**env, "SLURM_CONF": str(self.conf), "PATH": search_path()}
        self.daemons = []

    def command(self, *words):
        return subprocess.run([str(word) for word in words], env=self.env, text=True, timeout=60,
                              capture_output=True, check=False)

    def daemon(self, *words):
        log = self.directory / f"{words[0]}.out"
        with open(log, "w", encoding="utf-8") as out:
            self.daemons.append(subprocess.Popen(
                [str(word) for word in words], env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True))

    def start(self):
        """False: the daemons cannot run here; logs() says why."""
        directory = self.directory
        for name in ("state", "spool"):
            (directory / name).mkdir()
        key = directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.conf.write_text(CONF.format(
            dir=directory, user=pwd.getpwuid(os.geteuid()).pw_name,
            host=socket.gethostname().split(".")[0], ports=free_ports(2)))
        self.daemon("munged", "--foreground", "--force", f"--key-file={key}",
                    f"--socket={directory}/munge.socket", f"--pid-file={directory}/munged.pid",
                    f"--seed-file={directory}/munge.seed", f"--log-file={directory}/munged.log")
        if not until((directory / "munge.socket").exists, START_S):
            return False
        self.daemon("slurmctld", "-D", "-f", self.conf)
        self.daemon("slurmd", "-D", "-f", self.conf)
        return until(lambda: "idle" in self.command("sinfo", "-h", "-o", "%t").stdout, START_S)

    def logs(self):
        return "\n".join(path.read_text(errors="replace")[-2000:]
                         for path in self.directory.glob("*.out"))

    def ours(self):
        """Processes with our SLURM_CONF: daemons, steps and what these have started."""
        found = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if (entry.name.isdigit() and int(entry.name) != os.getpid()
                        and f"SLURM_CONF={self.conf}\0".encode() in
                        (entry / "environ").read_bytes()):
                    found[int(entry.name)] = (entry / "comm").read_text().strip()
        return found

    def jobs(self):
        """Processes of jobs."""
        return {pid: name for pid, name in self.ours().items()
                if pid not in [d.pid for d in self.daemons]
                and not name.startswith(("munged", "slurmctld", "slurmd", "slurmscriptd"))}

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(2)  # slurmctld takes its time, and nothing of it is needed any more
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for pid in self.ours():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
