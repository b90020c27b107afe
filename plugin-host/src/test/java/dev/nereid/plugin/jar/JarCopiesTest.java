package dev.nereid.plugin.jar;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.plugin.PluginJar;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class JarCopiesTest {
    @TempDir
    private Path root;

    private Path jar;
    private PluginSource source;
    private String digest;

    @BeforeEach
    void createPlugin() throws IOException {
        jar = PluginJar.of("class Any { }").entry("data.txt", "some data").write(root.resolve("plugin/any.jar"));
        source = new PluginSource("plugin", root.resolve("plugin"), List.of(jar));
        digest = PluginDigest.hash(source.jars());
    }

    @Test
    void copiesIntoADirectoryOfTheOwnerNamedByTheContent() throws IOException {
        PluginSource copy = copies().copy(source, digest);

        Path expected = root.resolve("cache/jars").resolve(digest);
        assertThat(copy.jars()).containsExactly(expected.resolve("any.jar"));
        assertThat(copy.directory()).isEqualTo(source.directory());
        assertThat(copy.jars().getFirst()).hasSameBinaryContentAs(jar);
        assertThat(permissions(expected)).isEqualTo("rwx------");
        assertThat(permissions(expected.getParent())).isEqualTo("rwx------");
        assertThat(permissions(copy.jars().getFirst())).isEqualTo("rw-------");
        assertThat(entries()).containsExactly(digest);
    }

    @Test
    void usesACopyThatIsThere() throws IOException {
        Path first = copies().copy(source, digest).jars().getFirst();
        Object inode = Files.getAttribute(first, "unix:ino");

        Path second = copies().copy(source, digest).jars().getFirst();

        assertThat(second).isEqualTo(first);
        assertThat(Files.getAttribute(second, "unix:ino")).isEqualTo(inode);
    }

    @Test
    void usesACopyWithoutReadingThePluginOnceItWasVerified() throws IOException {
        Path first = copies().copy(source, digest).jars().getFirst();
        Files.delete(jar);

        assertThat(copies().copy(source, digest).jars()).containsExactly(first);
    }

    @Test
    void replacesACopyOfTheSameSizeAndTimeWithOtherContent() throws IOException {
        Path copy = copies().copy(source, digest).jars().getFirst();
        FileTime time = Files.getLastModifiedTime(copy);
        byte[] changed = Files.readAllBytes(copy);
        changed[changed.length / 2] ^= 1;
        Files.write(copy, changed);
        Files.setLastModifiedTime(copy, time);

        assertThat(copies().copy(source, digest).jars().getFirst())
                .isEqualTo(copy)
                .hasSameBinaryContentAs(jar);
        assertThat(entries()).containsExactly(digest);
    }

    @Test
    void replacesACopyThatIsCutOrMissing() throws IOException {
        Path copy = copies().copy(source, digest).jars().getFirst();
        Files.write(copy, new byte[0], StandardOpenOption.TRUNCATE_EXISTING);
        assertThat(copies().copy(source, digest).jars().getFirst()).hasSameBinaryContentAs(jar);

        Files.delete(copy);
        assertThat(copies().copy(source, digest).jars().getFirst()).hasSameBinaryContentAs(jar);
    }

    @Test
    void replacesLinksToOtherFiles() throws IOException {
        Path copy = copies().copy(source, digest).jars().getFirst();
        Path elsewhere = Files.createDirectories(root.resolve("elsewhere"));
        Files.copy(jar, elsewhere.resolve("any.jar"));
        Files.delete(copy);
        Files.createSymbolicLink(copy, elsewhere.resolve("any.jar"));
        assertThat(copies().copy(source, digest).jars().getFirst())
                .satisfies(file -> assertThat(Files.isSymbolicLink(file)).isFalse());

        Path directory = copy.getParent();
        Files.move(directory, root.resolve("moved"));
        Files.createSymbolicLink(directory, elsewhere);
        assertThat(copies().copy(source, digest).jars().getFirst().getParent())
                .satisfies(file -> assertThat(Files.isSymbolicLink(file)).isFalse());
        assertThat(elsewhere.resolve("any.jar")).exists();
    }

    @Test
    void verifiesTheContentOfACopyThatWasMoved() throws IOException {
        Path copy = copies().copy(source, digest).jars().getFirst();
        Path moved = root.resolve("moved.jar");
        Files.copy(copy, moved);
        Files.delete(copy);
        Files.copy(moved, copy);
        Object inode = Files.getAttribute(copy, "unix:ino");

        assertThat(copies().copy(source, digest).jars()).containsExactly(copy);
        assertThat(Files.getAttribute(copy, "unix:ino")).isEqualTo(inode);
    }

    @Test
    void makesNoCopyThatDiffersFromItsName() throws IOException {
        PluginJar.of("class Other { }").write(jar);

        assertThat(copies().copy(source, digest)).isEqualTo(source);
        assertThat(entries()).isEmpty();
    }

    @Test
    void usesTheJarsInPlaceWithoutADirectoryForCopies() throws IOException {
        Path file = Files.writeString(root.resolve("file"), "not a directory", StandardCharsets.UTF_8);

        assertThat(new JarCopies(file).copy(source, digest)).isEqualTo(source);
        assertThat(new JarCopies(Path.of("/dev/null/cache")).copy(source, digest))
                .isEqualTo(source);
        assertThat(new JarCopies(Path.of("")).copy(source, digest)).isEqualTo(source);
        assertThat(Path.of("jars")).doesNotExist();
    }

    @Test
    void usesTheJarsInPlaceIfOthersCanWriteTheCopies() throws IOException {
        Path jars = Files.createDirectories(root.resolve("cache/jars"));
        Files.setPosixFilePermissions(jars, PosixFilePermissions.fromString("rwxrwxrwx"));

        assertThat(copies().copy(source, digest)).isEqualTo(source);
        assertThat(entries()).isEmpty();
    }

    @Test
    void removesCopiesThatWereNotUsedForSomeTime() throws IOException {
        Path jars = Files.createDirectories(root.resolve("cache/jars"));
        Path locks = Files.createDirectories(root.resolve("cache/jar-locks"));
        Path unused = Files.createDirectories(jars.resolve("0".repeat(64)));
        Files.writeString(unused.resolve("old.jar"), "old");
        Path recent = Files.createDirectories(jars.resolve("1".repeat(64)));
        Instant now = Instant.now();
        for (Path copy : List.of(unused, recent)) {
            Files.createFile(locks.resolve(copy.getFileName()));
        }
        Instant old = now.minus(JarLeftovers.UNUSED).minusSeconds(60);
        Files.setLastModifiedTime(locks.resolve(unused.getFileName()), FileTime.from(old));
        Path unknown = Files.createDirectories(jars.resolve("2".repeat(64)));
        Path other = Files.createDirectories(jars.resolve("not a copy"));

        copies().removeLeftovers(now);

        assertThat(unused).doesNotExist();
        assertThat(List.of(recent, unknown, other))
                .allSatisfy(kept -> assertThat(kept).exists());
        copies().removeLeftovers(now.plus(JarLeftovers.UNUSED).plusSeconds(60));
        assertThat(unknown).as("counted from when it was first seen").doesNotExist();
    }

    /** Libraries of hundreds of megabytes may lie there. */
    @Test
    void removesCacheDirectoriesOfPluginsThatWereNotUsedForSomeTime() throws IOException {
        Path used = Files.createDirectories(root.resolve("cache/echo-" + digest));
        Path unused = Files.createDirectories(root.resolve("cache/echo-2-" + "0".repeat(32)));
        Files.writeString(Files.createDirectory(unused.resolve("natives")).resolve("library.so"), "old");
        Path other = Files.createDirectories(root.resolve("cache/echo"));
        copies().copy(source, digest);
        Instant now = Instant.now();

        copies().removeLeftovers(now);
        assertThat(unused).as("counted from when it was first seen").exists();
        copies().removeLeftovers(now.plus(JarLeftovers.UNUSED.multipliedBy(2)));

        assertThat(unused).doesNotExist();
        assertThat(used).exists();
        assertThat(other).exists();
    }

    /** Whatever the time: class loaders read their jars as long as the process runs. */
    @Test
    void keepsCopiesThatThisProcessUses() throws IOException {
        Files.createDirectories(root.resolve("cache"));
        Files.createDirectory(
                root.resolve("cache/jars"),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        Path copy = copies().copy(source, digest).jars().getFirst();

        copies().removeLeftovers(Instant.now().plus(JarLeftovers.UNUSED.multipliedBy(100)));

        assertThat(copy).exists();
    }

    @Test
    void keepsCopiesThatAnotherProcessUses() throws Exception {
        Path jars = Files.createDirectories(root.resolve("cache/jars"));
        Path locks = Files.createDirectories(root.resolve("cache/jar-locks"));
        Path used = Files.createDirectories(jars.resolve("3".repeat(64)));
        Path lock = Files.createFile(locks.resolve(used.getFileName()));
        Files.setLastModifiedTime(lock, FileTime.from(Instant.EPOCH));
        Path program = Files.writeString(root.resolve("Hold.java"), """
                import java.nio.channels.FileChannel;
                import java.nio.file.*;

                class Hold {
                    public static void main(String[] arguments) throws Exception {
                        FileChannel channel = FileChannel.open(
                                Path.of(arguments[0]), StandardOpenOption.READ, StandardOpenOption.WRITE);
                        channel.lock(0, Long.MAX_VALUE, true);
                        System.out.println("held");
                        System.in.read();
                    }
                }
                """);
        Process holder = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin/java").toString(),
                        program.toString(),
                        lock.toString())
                .start();
        try (BufferedReader out = holder.inputReader()) {
            assertThat(out.readLine()).isEqualTo("held");

            copies().removeLeftovers(Instant.now());
            assertThat(used).exists();
        } finally {
            holder.destroyForcibly().waitFor();
        }
        copies().removeLeftovers(Instant.now());
        assertThat(used).doesNotExist();
    }

    /** As in tests of frameworks that load the server again. */
    @Tag("slow")
    @Test
    void aUseLastsThatAServerOfAnotherClassLoaderHasToo() throws Exception {
        String copy = "4".repeat(64);
        Path locks = root.resolve("cache/jar-locks");
        Path program = Files.writeString(root.resolve("TryLocks.java"), """
                import java.nio.channels.FileChannel;
                import java.nio.file.*;

                class TryLocks {
                    public static void main(String[] arguments) throws Exception {
                        try (DirectoryStream<Path> files = Files.newDirectoryStream(Path.of(arguments[0]))) {
                            for (Path file : files) {
                                try (FileChannel channel = FileChannel.open(
                                        file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                                    System.out.println(channel.tryLock() == null ? "used" : "free");
                                }
                            }
                        }
                    }
                }
                """);
        JarUses first = new JarUses(locks);
        first.begin(copy);
        URL[] classes = {JarUses.class.getProtectionDomain().getCodeSource().getLocation()};
        try (URLClassLoader loader = new URLClassLoader(classes, ClassLoader.getPlatformClassLoader())) {
            Class<?> type = loader.loadClass(JarUses.class.getName());
            Constructor<?> constructor = type.getDeclaredConstructor(Path.class);
            constructor.setAccessible(true);
            Object second = constructor.newInstance(locks);
            call(type, second, "begin", copy);
            assertThat(tryLocks(program, locks)).contains("used");

            first.end(copy);
            assertThat(tryLocks(program, locks)).contains("used");
            Instant later = Instant.now().plusSeconds(60);
            assertThat(first.removeUnused(copy, later, () -> {})).isFalse();

            call(type, second, "end", copy);
            assertThat(tryLocks(program, locks)).doesNotContain("used");
            assertThat(first.removeUnused(copy, later, () -> {})).isTrue();
        }
    }

    private static void call(Class<?> type, Object uses, String name, String copy) throws Exception {
        Method method = type.getDeclaredMethod(name, String.class);
        method.setAccessible(true);
        method.invoke(uses, copy);
    }

    private static List<String> tryLocks(Path program, Path locks) throws Exception {
        Process trying = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin/java").toString(),
                        program.toString(),
                        locks.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (BufferedReader out = trying.inputReader()) {
            List<String> lines = out.lines().toList();
            assertThat(trying.waitFor()).isZero();
            return lines;
        }
    }

    @Test
    void removesWhatInterruptedProcessesLeft() throws IOException {
        Path jars = Files.createDirectories(root.resolve("cache/jars"));
        Instant now = Instant.now();
        Path outside = Files.createDirectories(root.resolve("outside"));
        Files.writeString(outside.resolve("file"), "kept");
        for (String name : List.of(".new-1", ".old-2")) {
            Path left = Files.createDirectories(jars.resolve(name).resolve("sub"));
            Files.writeString(left.resolve("half.jar"), "half");
            Files.createSymbolicLink(left.resolve("link"), outside);
            Files.setLastModifiedTime(jars.resolve(name), FileTime.from(now.minus(JarLeftovers.INCOMPLETE)));
        }
        Path running = Files.createDirectories(jars.resolve(".new-3"));

        copies().removeLeftovers(now.plusSeconds(1));

        assertThat(entries()).containsExactly(".new-3");
        assertThat(running).exists();
        assertThat(outside.resolve("file")).exists();
    }

    @Test
    void removesALimitedNumberAtOnce() throws IOException {
        Path jars = Files.createDirectories(root.resolve("cache/jars"));
        for (int i = 0; i < JarLeftovers.MAX_REMOVED + 5; i++) {
            Files.setLastModifiedTime(Files.createDirectory(jars.resolve(".new-" + i)), FileTime.from(Instant.EPOCH));
        }

        copies().removeLeftovers(Instant.now());
        assertThat(entries()).hasSize(5);
        copies().removeLeftovers(Instant.now());
        assertThat(entries()).isEmpty();
    }

    private JarCopies copies() {
        return new JarCopies(root.resolve("cache"));
    }

    private List<String> entries() throws IOException {
        try (Stream<Path> entries = Files.list(root.resolve("cache/jars"))) {
            return entries.map(entry -> entry.getFileName().toString()).toList();
        }
    }

    private static String permissions(Path file) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
    }
}
