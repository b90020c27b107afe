package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The server of an installation by root, started by a user that the system does not know: no name, no home directory. */
@Timeout(300)
@Tag("slow")
final class ForeignUserIT {
    private static final String USER = "54321";
    private static final String INSTALLED = "/opt/nereid";
    private static final List<String> FREE_PORTS = List.of("--http-port=0", "--grpc-port=0", "--metrics-port=0");

    @TempDir
    private Path directory;

    private Path temporary;

    @BeforeEach
    void openDirectories() throws Exception {
        Tool.requireMounts();
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        temporary = Files.createDirectory(directory.resolve("temporary"));
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rwxrwxrwx"));
    }

    @Test
    void servesFromAnInstallationThatItCannotWrite() throws Exception {
        List<String> command = new ArrayList<>(List.of("demo", "--exit"));
        command.addAll(FREE_PORTS);

        String out = nereid(InstalledServer.HOME, "", command);

        assertThat(out).contains("over HTTP: seven", "over gRPC: seven");
        assertThat(temporary).as("the cache directory").isNotEmptyDirectory();
    }

    /** Hundreds of megabytes of libraries are unpacked where this user may write. */
    @Test
    void loadsPyTorchFromAnInstallationThatItCannotWrite() throws Exception {
        Repository models = new Repository(Files.createDirectory(directory.resolve("models")))
                .copyOf(InstalledServer.CHECKOUT.resolve("examples/pytorch-models/digits_torchscript"));

        String out = nereid(
                InstalledServer.HOME,
                "",
                List.of("check", "--load", models.directory().toString()));

        assertThat(out).containsPattern("(?m)^digits_torchscript +1 +pytorch +valid");
        try (Stream<Path> files = Files.walk(temporary)) {
            assertThat(files)
                    .filteredOn(file -> file.endsWith("libtorch_cpu.so"))
                    .hasSize(1);
        }
    }

    /** The JVM would start without an AOT cache that it cannot read, and say nothing. */
    @Test
    void usesTheAotCacheThatTheContainerfileMakesAsRoot() throws Exception {
        Path server = Files.createDirectory(directory.resolve("server"));
        Tool.succeed(
                server,
                "sh",
                "-c",
                "tar --exclude=./plugins/.cache --exclude=./plugins/tensorflow --exclude=./plugins/pytorch --exclude='*.aot' -C \"$0\" -c . | tar -x",
                InstalledServer.HOME.toString());
        String run = Files.readString(InstalledServer.HOME.resolve("deploy/Containerfile"))
                .lines()
                .filter(line -> line.startsWith("RUN "))
                .findFirst()
                .orElseThrow();

        Tool.succeed(
                directory,
                "sh",
                "-c",
                "umask 077; export JAVA_HOME=\"$0\"; " + run.substring(4).replace(INSTALLED, server.toString()),
                System.getProperty("java.home"));

        assertThat(server.resolve("plugins/.cache")).as("files of root").doesNotExist();
        assertThat(server.resolve("lib")).isDirectoryNotContaining("glob:**/.nereid*");
        assertThat(nereid(server, "-XX:AOTMode=on", List.of("--version"))).contains("nereid ");
    }

    /** Runs a command of an installation that is mounted read-only, and returns its output. */
    private String nereid(Path installed, String options, List<String> arguments)
            throws IOException, InterruptedException {
        Path mounted = Files.createDirectory(directory.resolve("mounted"));
        List<String> line = new ArrayList<>(List.of(
                "unshare",
                "--mount",
                "sh",
                "-c",
                "set -e; mount --bind \"$0\" \"$1\"; mount -o remount,ro,bind \"$1\"; shift; exec \"$@\"",
                installed.toString(),
                mounted.toString(),
                "setpriv",
                "--reuid=" + USER,
                "--regid=" + USER,
                "--clear-groups",
                "env",
                "-i",
                "PATH=/usr/bin:/bin",
                "JAVA_HOME=" + System.getProperty("java.home"),
                "NEREID_JAVA_OPTIONS=-Djava.io.tmpdir=" + temporary + " " + options,
                mounted + "/bin/nereid"));
        line.addAll(arguments);
        return Tool.succeed(directory, line.toArray(String[]::new));
    }
}
