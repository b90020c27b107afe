package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.MarkdownPage;
import dev.nereid.distribution.testing.PageScript;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The steps that install the unit of systemd, in order, in a mount namespace with directories {@code /etc}, {@code /var} and
 * {@code /opt} of its own. In place of systemd, the test makes the directories of the unit and starts its command as its user.
 */
@Timeout(300)
@Tag("slow")
final class UnitIT {
    private static final long SECONDS_TO_STOP = 60;

    /** The commands before the steps; {@code $0} is the directory of the test, and {@code $1} the server. */
    private static final String PREPARATION = """
            set -e
            mount -t tmpfs tmpfs "$0/etc"
            cp -a /etc/. "$0/etc"
            mount --bind "$0/etc" /etc
            mount --bind "$0/var" /var
            mount --bind "$0/opt" /opt
            mkdir -p /etc/systemd/system /opt/nereid
            mount --bind "$1" /opt/nereid
            mkdir /var/lib /var/cache /var/log
            systemctl() { echo "systemctl $*"; }
            """;

    /** The commands in place of systemd, and a rotation of the certificate before the start. */
    private static final String START = """
            openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                -keyout /etc/nereid/tls.key -out /etc/nereid/tls.crt
            cp /etc/nereid/tls.crt "$0/tls.crt"
            stat -c '%n %U:%G %a' /etc/nereid/*
            install -d -o nereid -g nereid /var/lib/nereid /var/cache/nereid /var/log/nereid
            cd /
            set -a
            . /etc/nereid/nereid.env
            exec setpriv --reuid=nereid --regid=nereid --clear-groups env HOME=/nonexistent \
            """;

    @TempDir
    private Path directory;

    @BeforeEach
    void requirePrograms() throws Exception {
        Tool.requireMounts();
        Tool.require("useradd");
        Tool.require("openssl");
        Tool.require("curl");
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        for (String mounted : List.of("etc", "var", "opt")) {
            Files.createDirectory(directory.resolve(mounted));
        }
    }

    @Test
    void theStepsOfThePageMakeAServiceThatStarts() throws Exception {
        MarkdownPage steps = MarkdownPage.of("docs/operations.md").section("Under systemd");
        String unit = Files.readString(InstalledServer.HOME.resolve("deploy/systemd/nereid.service"));
        assertThat(steps.commands()).hasSize(1);
        assertThat(unit)
                .contains(
                        steps.commands().getFirst().replaceAll("(?m)^", "#   ").stripTrailing());
        assertThat(unit).contains("\nUser=nereid\n", "\nGroup=nereid\n", "\nStateDirectory=nereid\n");
        String command = unit.replaceAll("(?s).*\nExecStart=([^\n]+)\n.*", "$1");
        Path log = directory.resolve("log.txt");
        int port = PageScript.freePort();
        Process server = start(PREPARATION + steps.commands().getFirst() + START + command, port, log);
        try {
            String ready = Tool.succeed(
                    directory,
                    "curl",
                    "-s",
                    "--retry",
                    "50",
                    "--retry-delay",
                    "1",
                    "--retry-all-errors",
                    "--cacert",
                    "tls.crt",
                    "-w",
                    "%{http_code}",
                    "https://localhost:" + port + "/v2/models/add_sub/ready");

            assertThat(ready).as(Files.readString(log)).isEqualTo("200");
            server.destroy();
            assertThat(server.waitFor(SECONDS_TO_STOP, TimeUnit.SECONDS)).isTrue();
            assertThat(server.exitValue()).as(Files.readString(log)).isZero();
        } finally {
            server.destroyForcibly();
        }
        assertThat(Files.readString(log))
                .contains(
                        "systemctl daemon-reload\nsystemctl enable --now nereid\n",
                        "/etc/nereid/nereid.env root:nereid 640\n",
                        "/etc/nereid/tls.key root:nereid 640\n");
        assertThat(Files.readString(directory.resolve("var/log/nereid/nereid.log")))
                .contains("\"message\":\"serving\"", "\"message\":\"stopped\"")
                .doesNotContain("\"level\":\"ERROR\"");
    }

    private Process start(String script, int port, Path log) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(List.of(
                        "unshare",
                        "--mount",
                        "sh",
                        "-c",
                        script,
                        directory.toString(),
                        InstalledServer.HOME.toString()))
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .redirectOutput(log.toFile());
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        builder.environment().put("NEREID_HTTP_PORT", String.valueOf(port));
        builder.environment().put("NEREID_GRPC_PORT", "0");
        builder.environment().put("NEREID_METRICS_PORT", "0");
        return builder.start();
    }
}
