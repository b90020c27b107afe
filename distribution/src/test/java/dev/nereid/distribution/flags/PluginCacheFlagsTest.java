package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ConsoleStreams;
import dev.nereid.distribution.process.HostInfo;
import dev.nereid.distribution.process.InstallationPaths;
import dev.nereid.distribution.process.OutOfMemoryExit;
import dev.nereid.distribution.process.ProcessShutdown;
import dev.nereid.distribution.process.ProcessTree;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the directory into which plugins unpack files. */
final class PluginCacheFlagsTest {
    @TempDir
    private Path directory;

    private Path user;
    private Path installation;

    @BeforeEach
    void makeDirectories() throws IOException {
        user = Files.createDirectory(directory.resolve("user"));
        installation = Files.createDirectory(directory.resolve("installation"));
    }

    @Test
    void isBesideThePluginsWhereThatCanBeWritten() throws IOException, UsageException {
        Files.createDirectory(installation.resolve("plugins"));

        assertThat(choose(Map.of("HOME", user.toString()))).isEqualTo(installation.resolve("plugins/.cache"));
    }

    @Test
    void isInTheUsersCacheWhereTheInstallationCannotBeWritten() throws IOException, UsageException {
        breakInstallation();

        assertThat(choose(Map.of("HOME", user.toString()))).isEqualTo(user.resolve(".cache/nereid"));
        assertThat(choose(Map.of(
                        "HOME", user.toString(),
                        "XDG_CACHE_HOME", user.resolve("xdg").toString())))
                .isEqualTo(user.resolve("xdg/nereid"));
    }

    @Test
    void isADirectoryOfTheUserAloneWithoutAHome() throws IOException, UsageException {
        breakInstallation();

        for (Map<String, String> environment : List.of(
                Map.<String, String>of(),
                Map.of("HOME", ""),
                Map.of("HOME", "/nonexistent"),
                Map.of("HOME", "/dev/null", "XDG_CACHE_HOME", "/dev/null/cache"))) {
            assertThat(choose(environment)).isEqualTo(directory.resolve("temporary"));
        }
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(directory.resolve("temporary"))))
                .isEqualTo("rwx------");
    }

    @Test
    void isNoDirectoryThatOthersCanWrite() throws IOException, UsageException {
        breakInstallation();
        Files.createDirectory(directory.resolve("temporary"));
        Files.setPosixFilePermissions(directory.resolve("temporary"), PosixFilePermissions.fromString("rwxrwxrwx"));

        assertThat(choose(Map.of())).isEqualTo(installation.resolve("plugins/.cache"));
    }

    @Test
    void isTheValueOfTheFlagOrItsVariable() throws UsageException {
        assertThat(choose(Map.of(), "--plugin-cache-directory=/somewhere")).isEqualTo(Path.of("/somewhere"));
        assertThat(choose(Map.of("NEREID_PLUGIN_CACHE_DIRECTORY", "/elsewhere")))
                .isEqualTo(Path.of("/elsewhere"));
    }

    /** A place that is not writable for any user. */
    private void breakInstallation() throws IOException {
        Files.createDirectory(installation.resolve("plugins"));
        Files.createFile(installation.resolve("plugins/.cache"));
    }

    private Path choose(Map<String, String> environment, String... arguments) throws UsageException {
        PluginCacheFlags cache = new PluginCacheFlags();
        Flags flags = new Flags();
        cache.declare(flags);
        flags.read(List.of(arguments), environment);
        return cache.directory(new CommandContext(
                new ConsoleStreams(System.out, System.err, false),
                environment,
                new InstallationPaths(installation, directory.resolve("temporary")),
                new HostInfo("1", "", "", 1),
                _ -> {},
                new ProcessShutdown(),
                new OutOfMemoryExit(OutputStream.nullOutputStream(), status -> {}),
                ProcessTree.ALONE));
    }
}
