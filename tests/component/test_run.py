#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""lockstep-run and lockstep-helper with a real HAProxy."""
import json
import os
import pathlib
import signal
import stat
import unittest

import lab
from direct import Direct, GROUP, UID, Traffic, call, stopped
from lab import is_alive, wait_for

FAST = {"restart_first_ms": 50, "restart_max_ms": 400, "stop_ms": 2000}


class Case(unittest.TestCase):
    def node(self, **tunables):
        node = Direct({**FAST, **tunables})
        self.addCleanup(node.close)
        return node

    def serving(self, **config):
        node = self.node()
        node.start()
        node.serve(1, **config)
        return node


class Start(Case):
    def test_makes_the_directories_with_their_modes(self):
        node = self.node()
        node.start()
        for path, mode, uid in ((node.state, 0o755, 0), (node.state / "data", 0o700, UID),
                                (node.state / "stage", 0o700, UID),
                                (node.state / "generation", 0o750, 0),
                                (node.run_dir, 0o755, 0), (node.run_dir / "run.sock", 0o600, 0),
                                (node.run_dir / "helper.sock", 0o660, 0)):
            found = path.stat()
            self.assertEqual((stat.S_IMODE(found.st_mode), found.st_uid), (mode, uid), path)
        gid = (node.run_dir / "helper.sock").stat().st_gid
        self.assertEqual((node.state / "generation").stat().st_gid, gid)
        self.assertEqual(node.service("status")["state"], "stopped")

    def refuses(self, prepare, reason):
        node = self.node()
        prepare(node)
        node.start(wait=False)
        self.assertEqual(node.process.wait(10), 1)
        self.assertIn(reason, node.log_text())

    def test_refuses_a_state_directory_that_is_a_link(self):
        def prepare(node):
            (node.lab.dir / "real").mkdir()
            node.state.symlink_to(node.lab.dir / "real")
        self.refuses(prepare, "state")

    def test_refuses_a_state_directory_of_somebody_else(self):
        def prepare(node):
            node.state.mkdir()
            os.chown(node.state, UID, 0)
        self.refuses(prepare, "belongs to uid %d" % UID)

    def test_refuses_a_run_directory_that_others_may_write_to(self):
        def prepare(node):
            node.run_dir.mkdir()
            node.run_dir.chmod(0o777)
        self.refuses(prepare, "others than root may write")

    def test_refuses_generations_of_somebody_else(self):
        def prepare(node):
            (node.state / "generation").mkdir(parents=True)
            os.chown(node.state / "generation", UID, 0)
        self.refuses(prepare, "generation belongs to uid %d" % UID)

    def test_tightens_modes_and_loosens_none(self):
        node = self.node()
        (node.state / "stage").mkdir(parents=True)
        (node.state / "data").mkdir()
        os.chown(node.state / "stage", UID, -1)
        os.chown(node.state / "data", UID, -1)
        (node.state / "stage").chmod(0o755)
        (node.state / "data").chmod(0o500)
        node.start()
        self.assertEqual(stat.S_IMODE((node.state / "stage").stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((node.state / "data").stat().st_mode), 0o500)

    def test_a_second_one_is_refused(self):
        node = self.node()
        node.start()
        first = node.process
        node.start(wait=False)
        self.assertEqual(node.process.wait(10), 1)
        self.assertIn("another lockstep-run", node.log_text())
        node.process = first
        self.assertTrue(node.helper(verb="status")["ok"])

    def test_wrong_options_are_refused(self):
        for options in (["--no-such"], ["x"], ["--state-dir", "relative"],
                        ["--user", "no-such-user"], ["--group", "no-such-group"],
                        ["--libexec", "/tmp"], ["--haproxy", "/no/such"],
                        ["--tunables", "/no/such"], ["--run-dir", "/" + "x" * 90]):
            done = lab.run(lab.BUILD / "lockstep-run", "--no-lockstepd", "--user", UID, *options,
                           check=False)
            self.assertIn(done.returncode, (1, 2), options)
            self.assertIn("lockstep-run: ", done.stderr)

    def test_starts_what_was_installed_before(self):
        node = self.serving(body="one")
        self.assertEqual(node.stop(), 0)
        node.start()
        wait_for(lambda: node.get() == "one", "HAProxy serves again")

    def test_privileges_of_helper_and_haproxy(self):
        node = self.serving()
        pid = node.record()["helper"]["pid"]
        status = pathlib.Path("/proc/%d/status" % pid).read_text(encoding="ascii")
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        # dac_read_search 2, net_bind_service 10, sys_ptrace 19
        wanted = 1 << 2 | 1 << 10 | 1 << 19
        for name in ("CapPrm", "CapEff", "CapBnd"):
            self.assertEqual(int(fields[name], 16), wanted, name)
        self.assertEqual(fields["NoNewPrivs"], "1")
        self.assertEqual(fields["Groups"].strip(), "")
        worker = node.haproxy_pids()[1]
        self.assertNotEqual(os.stat("/proc/%d" % worker).st_uid, 0)


class Stop(Case):
    def test_leaves_no_process_and_no_socket(self):
        node = self.serving()
        family = lab.descendants(node.process.pid)
        self.assertEqual(len(family), 3, family)
        self.assertEqual(node.stop(), 0)
        self.assertEqual([p for p in family if is_alive(p)], [])
        self.assertEqual(os.listdir(node.run_dir), ["run.lock"])
        with self.assertRaises(OSError):
            node.get()

    def test_kills_what_does_not_end(self):
        node = self.serving()
        worker = node.haproxy_pids()[1]
        with stopped(worker):
            self.assertEqual(node.stop(), 0)
            self.assertFalse(is_alive(worker))
        self.assertIn("did not end in time", node.log_text())

    def test_by_the_service_call_stays_stopped(self):
        node = self.serving()
        self.assertEqual(node.service("stop"), {"ok": True})
        wait_for(lambda: node.service("status")["state"] == "stopped", "HAProxy ends")
        self.assertEqual(node.helper(verb="status")["state"], "stopped")
        self.assertEqual(node.service("start"), {"ok": True})
        wait_for(lambda: node.get() == "one", "HAProxy serves again")

    def test_calls_on_the_service_are_a_closed_set(self):
        node = self.node()
        node.start()
        path = node.run_dir / "run.sock"
        for request, code in ((b"x", "syntax"), (b"[]", "syntax"), ({}, "syntax"),
                              ({"verb": "status"}, "syntax"),
                              ({"verb": "kill", "service": "haproxy"}, "invalid"),
                              ({"verb": "start", "service": "sshd"}, "invalid"),
                              ({"verb": "stop", "service": "haproxy", "now": True}, "syntax"),
                              ({"verb": "status", "service": "haproxy", "output_from": -1},
                               "invalid"),
                              ({"verb": "start", "service": "haproxy"}, "not_found")):
            self.assertEqual(call(path, request)["code"], code, request)


class Reload(Case):
    def test_swaps_the_configuration_without_a_failed_request(self):
        node = self.serving(body="one")
        with Traffic(node) as traffic:
            for number in range(2, 8):
                node.install(number, body="body%d" % number)
                answer = node.helper(verb="reload")
                self.assertTrue(answer["loaded"], answer)
                wait_for(lambda n=number: "body%d" % n in traffic.bodies, "the new body")
        self.assertEqual(traffic.failures, [])
        self.assertEqual(node.helper(verb="status")["reloads"], 6)

    def test_one_that_cannot_bind_is_told_and_the_old_one_serves(self):
        node = self.serving(body="one")
        other = node.listen(8081)
        node.install(2, body="two", ports=(8080, 8081))
        answer = node.helper(verb="reload")
        self.assertFalse(answer["loaded"])
        self.assertIn("cannot bind socket (Address already in use) for [127.0.0.1:8081]",
                      answer["output"])
        self.assertEqual(node.get(), "one")
        self.assertEqual(node.helper(verb="status")["failed_reloads"], 1)
        # The way back, and forward again when the port is free.
        self.assertTrue(node.helper(verb="install", generation=1)["ok"])
        self.assertTrue(node.helper(verb="reload")["loaded"])
        other.kill()
        other.wait()
        self.assertTrue(node.helper(verb="install", generation=2)["ok"])
        self.assertTrue(node.helper(verb="reload")["loaded"])
        self.assertEqual(node.get(8081), "two")

    def test_starts_haproxy_when_it_does_not_run(self):
        node = self.node()
        node.start()
        self.assertEqual(node.helper(verb="reload")["code"], "not_found")
        node.install(1, body="one")
        answer = node.helper(verb="reload")
        self.assertTrue(answer["loaded"], answer)
        self.assertEqual(answer["worker"], node.haproxy_pids()[1])
        self.assertEqual(node.get(), "one")

    def test_a_first_start_that_fails_tells_why(self):
        node = self.node()
        node.start()
        node.listen(8080)
        node.install(1)
        answer = node.helper(verb="reload")
        self.assertFalse(answer["loaded"])
        self.assertIn("cannot bind socket", answer["output"])
        self.assertEqual(node.helper(verb="status")["state"], "failed")

    def test_the_window_is_there_during_the_reload_and_gone_after(self):
        node = self.serving()
        window = node.run_dir / "reload-window"
        self.assertFalse(window.exists())
        with Traffic(node):
            node.listen(8081)
            node.install(2, body="two", ports=(8080, 8081))
            # A reload that cannot bind lasts for two seconds.
            helper = node.lab.start("/usr/bin/python3", "-c", (
                "import socket;s=socket.socket(socket.AF_UNIX);s.connect(%r);"
                "s.sendall(b'{\"verb\":\"reload\"}\\n');s.recv(1)"
                % str(node.run_dir / "helper.sock")))
            text = wait_for(lambda: window.exists() and window.read_text(encoding="ascii"),
                            "the window")
            now_ms = lab.time.clock_gettime(lab.time.CLOCK_MONOTONIC) * 1000
            self.assertGreater(int(text), now_ms)
            self.assertLessEqual(int(text), now_ms + 10000)
            helper.wait(20)
        self.assertFalse(window.exists())

    def test_restart_brings_a_new_master(self):
        node = self.serving()
        before = node.haproxy_pids()
        answer = node.helper(verb="restart")
        self.assertTrue(answer["loaded"], answer)
        after = node.haproxy_pids()
        self.assertNotEqual(before[0], after[0])
        self.assertEqual(after[1], answer["worker"])
        self.assertEqual(node.get(), "one")

    def test_reloads_in_a_row_are_all_seen(self):
        node = self.serving()
        for number in range(2, 12):
            node.install(number, body="b%d" % number)
            answer = node.helper(verb="reload")
            self.assertTrue(answer["loaded"], answer)
        self.assertEqual(node.helper(verb="status")["reloads"], 10)
        self.assertEqual(node.get(), "b11")


class Death(Case):
    def test_of_the_worker_is_followed_by_a_start(self):
        node = self.serving()
        os.kill(node.haproxy_pids()[1], signal.SIGKILL)
        wait_for(lambda: node.get() == "one", "HAProxy serves again")
        self.assertIn("ended with status 137", node.log_text())

    def test_of_the_master_is_followed_by_a_start(self):
        node = self.serving()
        master, worker = node.haproxy_pids()
        os.kill(master, signal.SIGKILL)
        wait_for(lambda: node.haproxy_pids()[0] not in (0, master), "a new master")
        wait_for(lambda: node.get() == "one", "HAProxy serves again")
        self.assertFalse(is_alive(worker))

    def test_of_the_master_ends_a_worker_that_hangs(self):
        node = self.serving()
        master, worker = node.haproxy_pids()
        with stopped(worker):
            os.kill(master, signal.SIGKILL)
            wait_for(lambda: not is_alive(worker), "the worker is gone")
            wait_for(lambda: node.get() == "one", "HAProxy serves again")

    def test_of_the_helper_is_followed_by_a_start(self):
        node = self.serving()
        pid = node.record()["helper"]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: node.record()["helper"]["pid"] not in (0, pid), "a new helper")
        wait_for(lambda: node.helper(verb="status")["state"] == "running", "it answers")
        self.assertEqual(node.get(), "one")

    def test_right_at_the_start_falls_back_on_the_good_generation(self):
        node = self.serving(body="one")
        node.install(2, body="two", ports=(8080, 8081))
        self.assertEqual(node.stop(), 0)
        other = node.listen(8081)
        node.start()
        wait_for(lambda: node.get() == "one", "the good generation serves")
        status = node.service("status")
        self.assertTrue(status["on_good"])
        self.assertEqual((status["generation"], status["failures"]), (1, 2))
        self.assertIn("started with the last good one, 1", node.log_text())
        # The next reload is on the current generation again.
        other.kill()
        other.wait()
        answer = node.helper(verb="reload")
        self.assertTrue(answer["loaded"], answer)
        self.assertEqual(node.get(8081), "two")
        self.assertFalse(node.service("status")["on_good"])

    def test_delays_grow_up_to_the_limit(self):
        node = self.serving(body="one")
        self.assertEqual(node.stop(), 0)
        node.listen(8080)
        node.start()
        # No other generation to fall back on: it is tried again and again.
        wait_for(lambda: node.service("status")["failures"] >= 3, "three failures", 30)
        self.assertEqual(node.service("status")["state"] in ("waiting", "starting"), True)
        self.assertFalse(node.service("status")["on_good"])

    def test_of_lockstep_run_leaves_haproxy_serving(self):
        node = self.serving(body="one")
        before = node.haproxy_pids()
        helper = node.record()["helper"]["pid"]
        with Traffic(node) as traffic:
            os.kill(node.process.pid, signal.SIGKILL)
            node.process.wait()
            node.start()
            wait_for(lambda: node.record()["helper"]["pid"] not in (0, helper), "a new helper")
            wait_for(lambda: node.helper(verb="status")["ok"], "it answers")
            self.assertEqual(node.haproxy_pids(), before)
            self.assertFalse(is_alive(helper))
            # A reload still works, and what HAProxy says is still heard.
            node.install(2, body="two")
            self.assertTrue(node.helper(verb="reload")["loaded"])
        self.assertEqual(traffic.failures, [])
        node.listen(8081)
        node.install(3, body="three", ports=(8080, 8081))
        answer = node.helper(verb="reload")
        self.assertFalse(answer["loaded"])
        self.assertIn("Address already in use", answer["output"])
        self.assertEqual(node.haproxy_pids()[0], before[0])
        self.assertEqual(node.stop(), 0)
        self.assertFalse(is_alive(before[0]))
        self.assertEqual(os.listdir(node.run_dir), ["run.lock"])

    def test_of_lockstep_run_and_then_of_haproxy(self):
        node = self.serving(body="one")
        master = node.haproxy_pids()[0]
        os.kill(node.process.pid, signal.SIGKILL)
        node.process.wait()
        node.start()
        wait_for(lambda: node.service("status")["pid"] == master, "HAProxy is taken over")
        os.kill(master, signal.SIGKILL)
        lab.reap()
        wait_for(lambda: node.service("status")["pid"] not in (0, master), "a new master")
        wait_for(lambda: node.get() == "one", "HAProxy serves again")

    def test_of_lockstep_run_and_haproxy_reload_meanwhile(self):
        """Nobody reads what HAProxy prints while lockstep-run is dead: it must not mind."""
        node = self.serving(body="one")
        os.kill(node.process.pid, signal.SIGKILL)
        node.process.wait()
        node.install(2, body="two")
        for _ in range(3):
            self.assertTrue(node.helper(verb="reload")["loaded"])
        self.assertEqual(node.get(), "two")

    def test_a_record_of_other_processes_harms_nobody(self):
        node = self.serving()
        self.assertEqual(node.stop(), 0)
        bystander = node.lab.start("/usr/bin/python3", "-c", "import signal;signal.pause()")
        record = {"boot": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(
            encoding="ascii").strip(), "on_good": False, "generation": 1}
        for name in ("haproxy", "helper", "lockstepd"):
            record[name] = {"pid": bystander.pid, "ticks": 1}
        (node.run_dir / "run.json").write_text(json.dumps(record), encoding="ascii")
        node.start()
        wait_for(lambda: node.get() == "one", "HAProxy serves")
        self.assertTrue(is_alive(bystander.pid))
        self.assertEqual(node.stop(), 0)
        (node.run_dir / "run.json").write_text("{", encoding="ascii")
        node.start()
        wait_for(lambda: node.get() == "one", "HAProxy serves")
        self.assertIn("run.json is of no use", node.log_text())


class Daemon(Case):
    """lockstepd is played by a script that tells how it was started."""

    def test_is_started_without_privileges_and_again_when_it_dies(self):
        node = self.node()
        folder = node.lab.dir / "libexec"
        folder.mkdir()
        (folder / "lockstep-helper").symlink_to(lab.BUILD / "lockstep-helper")
        script = folder / "lockstepd"
        script.write_text(
            "#!/usr/bin/python3\nimport os,signal,sys\n"
            "text = open('/proc/self/status').read() + repr(sys.argv) + '\\n'\n"
            "open(%r, 'w').write(text)\nsignal.pause()\n"
            % str(node.state / "data" / "started"), encoding="ascii")
        script.chmod(0o755)
        node.process = node.lab.start(
            lab.BUILD / "lockstep-run", "--state-dir", node.state, "--run-dir", node.run_dir,
            "--user", UID, "--group", GROUP, "--tunables", node.tunables, "--libexec", folder,
            "--listen", "127.0.0.1:8443", "--node-name", "n1", "--lockstepd-arg", "--crash",
            "--lockstepd-arg", "here", ns=node.ns, log=node.log)
        text = wait_for(
            lambda: (node.state / "data" / "started").read_text(encoding="ascii"), "lockstepd")
        fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"):
            self.assertEqual(int(fields[name], 16), 0, name)
        self.assertEqual(set(fields["Uid"].split()), {str(UID)})
        self.assertEqual(fields["Groups"].strip(), "")
        self.assertEqual(fields["NoNewPrivs"], "1")
        self.assertIn("'--socket-group', '%s'" % GROUP, text)
        self.assertIn("'--listen', '127.0.0.1:8443', '--node-name', 'n1'", text)
        self.assertTrue(text.rstrip().endswith("'--crash', 'here']"))
        pid = node.record()["lockstepd"]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: node.record()["lockstepd"]["pid"] not in (0, pid), "a new lockstepd")
        pid = node.record()["lockstepd"]["pid"]
        self.assertEqual(node.stop(), 0)
        self.assertFalse(is_alive(pid))


if __name__ == "__main__":
    unittest.main()
