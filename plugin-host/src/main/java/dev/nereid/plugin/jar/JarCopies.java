package dev.nereid.plugin.jar;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Private copies of plugins' jars, in directories named by content. Immutable; safe for use by any thread and by
 * several servers at once.
 *
 * <p>A class loader reads its jars whenever a class is needed, so a jar that is replaced or truncated would break the
 * plugin that is loaded from it. The server therefore loads from copies that only its user can access. A copy is written
 * into a temporary directory, and moved to its name when it is complete.
 *
 * <p>A copy that exists is verified. The server keeps the inode, size and times of the files that it compared with the
 * plugin's jars. If they are the same, the files have not been written since: the time of the last change of an inode
 * cannot be set. Otherwise the content is compared again, and a copy that differs is replaced.
 */
public final class JarCopies {
    private static final Logger LOG = LoggerFactory.getLogger(JarCopies.class);
    private static final String DIRECTORY = "jars";
    private static final String LOCKS = "jar-locks";
    private static final String VERIFIED = ".verified";
    private static final String STAMP = "unix:ino,size,lastModifiedTime,ctime";
    private static final String POSIX = "posix";
    private static final Set<PosixFilePermission> OWNER_DIRECTORY = PosixFilePermissions.fromString("rwx------");
    private static final Set<PosixFilePermission> OWNER_FILE = PosixFilePermissions.fromString("rw-------");
    private static final FileAttribute<?> FOR_OWNER = PosixFilePermissions.asFileAttribute(OWNER_DIRECTORY);

    private final Path root;
    private final JarUses uses;

    /** Creates the copies below a directory, which is created when first needed; empty for none. */
    public JarCopies(Path cacheRoot) {
        root = cacheRoot.resolve(DIRECTORY);
        uses = new JarUses(cacheRoot.resolve(LOCKS));
    }

    /**
     * Removes copies that no process has used for some time, the cache directories of such plugins, and what interrupted
     * processes left. Blocks.
     */
    public void removeLeftovers(Instant now) {
        if (root.getParent() != null) {
            JarLeftovers.ofCopies(root, uses).remove(now);
            JarLeftovers.ofCaches(root.getParent(), uses).remove(now);
        }
    }

    /** A plugin with copies of its jars, which stay until the close. Safe for use by any thread. */
    public static final class Copy implements AutoCloseable {
        private final PluginSource source;
        private final Runnable end;
        private final AtomicBoolean closed = new AtomicBoolean();

        private Copy(PluginSource source, Runnable end) {
            this.source = source;
            this.end = end;
        }

        /** Returns the plugin with the copies; with its own jars if no copy could be made. */
        public PluginSource source() {
            return source;
        }

        /** Ends the use of the copies. Later calls do nothing. */
        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                end.run();
            }
        }
    }

    /**
     * Copies the jars of a plugin, unless there are copies of them, and keeps them until the process ends.
     *
     * @param digest the {@linkplain PluginDigest digest} of its jars
     * @return the plugin with the copies; with its own jars, and a warning in the log, if no copy can be made
     */
    public PluginSource copy(PluginSource source, String digest) {
        return use(source, digest).source();
    }

    /**
     * Copies the jars of a plugin, unless there are copies of them.
     *
     * @param digest the {@linkplain PluginDigest digest} of its jars
     * @return the copies, closed by the caller when no class loader reads them any more
     */
    public Copy use(PluginSource source, String digest) {
        boolean isUsed = false;
        boolean isComplete = false;
        try {
            prepareRoot();
            Path directory = root.resolve(digest);
            if (Files.isWritable(root)) { // otherwise nothing is removed either
                uses.begin(digest);
                isUsed = true;
            }
            if (!isIntact(directory, source)) {
                replace(directory, source, digest);
            }
            isComplete = true;
            return new Copy(source.withJarsIn(directory), isUsed ? () -> end(source, digest) : () -> {});
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("plugin", source.name())
                    .addKeyValue("directory", root)
                    .addKeyValue("reason", e.toString())
                    .log(
                            "jars of plugin used in place, since they could not be copied to the cache directory: they must"
                                    + " not be replaced while the server runs (plugin '{}', {}): {}",
                            source.name(),
                            root,
                            e.toString());
            return new Copy(source, () -> {});
        } finally {
            if (isUsed && !isComplete) {
                end(source, digest);
            }
        }
    }

    /**
     * Keeps copies until the process ends, also if the class loader of this class does not: for a library that all servers of
     * the process share.
     *
     * @param digest the {@linkplain PluginDigest digest} of its jars
     * @return an object of the JDK that has to stay reachable until then
     */
    public Object hold(PluginSource source, String digest) {
        use(source, digest); // never closed
        return uses.held(digest);
    }

    /**
     * Ends a use, unless the plugin has unpacked files: native libraries stay mapped until the process ends, and are found by
     * their paths when the plugin is loaded again.
     */
    private void end(PluginSource source, String digest) {
        try {
            if (!hasUnpacked(source, digest)) {
                uses.end(digest);
            }
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("plugin", source.name())
                    .setCause(e)
                    .log("jars of plugin could not be released (plugin '{}')", source.name());
        }
    }

    private boolean hasUnpacked(PluginSource source, String digest) throws IOException {
        Path unpacked = root.resolveSibling(source.name() + "-" + digest);
        if (!Files.isDirectory(unpacked)) {
            return false;
        }
        try (Stream<Path> files = Files.list(unpacked)) {
            return files.findAny().isPresent();
        }
    }

    /**
     * Removes the copies of a plugin that was replaced, unless they are in use. They are if the plugin has unpacked files.
     */
    public void removeUnused(PluginSource source, String digest) {
        if (root.getParent() == null || !Files.isWritable(root)) {
            return;
        }
        try {
            uses.removeUnused(digest, Instant.MAX, () -> {
                delete(root.resolve(digest));
                delete(root.resolveSibling(source.name() + "-" + digest));
            });
        } catch (IOException e) { // a later start tries again
            LOG.atWarn()
                    .addKeyValue("plugin", source.name())
                    .setCause(e)
                    .log("copies of jars could not be removed (plugin '{}')", source.name());
        }
    }

    /** Creates the directory of copies if it is missing, and checks that only the server's user has access. */
    private void prepareRoot() throws IOException {
        if (root.getParent() == null) {
            throw new NoSuchFileException("no cache directory is configured");
        }
        if (!root.getFileSystem().supportedFileAttributeViews().contains(POSIX)) {
            throw new AccessDeniedException(root.toString(), null, "file system without permissions");
        }
        if (!Files.exists(root, LinkOption.NOFOLLOW_LINKS)) {
            Files.createDirectories(root.toAbsolutePath().getParent());
            try {
                Files.createDirectory(root, FOR_OWNER);
            } catch (FileAlreadyExistsException e) {
                // Another server has just created it: checked like any other.
            }
        }
        requireOwnerOnly(root);
        if (Files.isWritable(root)) {
            Path probe = Files.createTempFile(root, ".owner-", "");
            try {
                if (!Files.getOwner(root).equals(Files.getOwner(probe))) {
                    throw new AccessDeniedException(root.toString(), null, "belongs to another user");
                }
            } finally {
                Files.delete(probe);
            }
        }
    }

    private static void requireOwnerOnly(Path directory) throws IOException {
        if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
            throw new NotDirectoryException(directory.toString());
        }
        if (!OWNER_DIRECTORY.containsAll(Files.getPosixFilePermissions(directory, LinkOption.NOFOLLOW_LINKS))) {
            throw new AccessDeniedException(
                    directory.toString(), null, "accessible to other users (expected: permissions rwx------)");
        }
    }

    /** Returns whether a directory has copies with the content of the plugin's jars. */
    private static boolean isIntact(Path directory, PluginSource source) throws IOException {
        if (!Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        PluginSource copy = source.withJarsIn(directory);
        if (restoreOwnerOnly(directory)
                && copy.jars().stream().allMatch(jar -> Files.isRegularFile(jar, LinkOption.NOFOLLOW_LINKS))) {
            String stamps = stamps(copy.jars());
            Path verified = directory.resolve(VERIFIED);
            if (Files.isRegularFile(verified, LinkOption.NOFOLLOW_LINKS)
                    && Files.readString(verified).equals(stamps)) {
                return true;
            }
            if (isSameContent(source.jars(), copy.jars())) {
                writeStamps(directory, stamps);
                return true;
            }
        }
        LOG.atWarn()
                .addKeyValue("plugin", source.name())
                .addKeyValue("directory", directory)
                .log(
                        "copies of plugin's jars were changed, and are replaced (plugin '{}', {})",
                        source.name(),
                        directory);
        return false;
    }

    /** Restores the permissions of a directory that other users could not reach. Returns whether it is one. */
    private static boolean restoreOwnerOnly(Path directory) throws IOException {
        if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        if (!OWNER_DIRECTORY.containsAll(Files.getPosixFilePermissions(directory))) {
            Files.setPosixFilePermissions(directory, OWNER_DIRECTORY);
        }
        return true;
    }

    private static boolean isSameContent(List<Path> jars, List<Path> copies) throws IOException {
        for (int i = 0; i < jars.size(); i++) {
            if (Files.mismatch(jars.get(i), copies.get(i)) != -1) {
                return false;
            }
        }
        return true;
    }

    /** Describes files so that any write to one of them changes the text. */
    private static String stamps(List<Path> files) throws IOException {
        StringBuilder text = new StringBuilder();
        for (Path file : files) {
            Map<String, Object> stamp = new TreeMap<>(Files.readAttributes(file, STAMP, LinkOption.NOFOLLOW_LINKS));
            text.append(file.getFileName()).append(' ').append(stamp).append('\n');
        }
        return text.toString();
    }

    /** Keeps the stamps if the directory can be written; otherwise the next start compares the content again. */
    private static void writeStamps(Path directory, String stamps) throws IOException {
        if (Files.isWritable(directory)) {
            Path file = Files.createTempFile(directory, VERIFIED, "");
            Files.writeString(file, stamps);
            Files.move(file, directory.resolve(VERIFIED), StandardCopyOption.ATOMIC_MOVE);
        }
    }

    private void replace(Path directory, PluginSource source, String digest) throws IOException {
        Path fresh = Files.createTempDirectory(root, ".new-", FOR_OWNER);
        try {
            PluginSource copy = source.withJarsIn(fresh);
            for (int i = 0; i < source.jars().size(); i++) {
                write(source.jars().get(i), copy.jars().get(i));
            }
            if (!PluginDigest.hash(copy.jars()).equals(digest)) {
                throw new IOException("its jars were changed meanwhile");
            }
            writeStamps(fresh, stamps(copy.jars()));
            moveAway(directory);
            try {
                Files.move(fresh, directory, StandardCopyOption.ATOMIC_MOVE);
            } catch (FileAlreadyExistsException | DirectoryNotEmptyException e) {
                if (!isIntact(directory, source)) { // not the copy of another server that was quicker
                    throw e;
                }
            }
        } finally {
            delete(fresh);
        }
    }

    private static void write(Path source, Path copy) throws IOException {
        Files.copy(source, copy);
        Files.setPosixFilePermissions(copy, OWNER_FILE);
        try (FileChannel file = FileChannel.open(copy, StandardOpenOption.WRITE)) {
            file.force(true); // before the copy gets its name
        }
    }

    /** Removes copies that were changed. A process that has opened one of them continues to read it. */
    private void moveAway(Path directory) throws IOException {
        if (Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
            Path old = Files.createTempDirectory(root, ".old-", FOR_OWNER);
            Files.move(directory, old.resolve(directory.getFileName()), StandardCopyOption.ATOMIC_MOVE);
            delete(old);
        }
    }

    /** Deletes a file, or a directory with all that is in it, without following links. */
    static void delete(Path directory) throws IOException {
        if (!Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
            return;
        }
        List<Path> entries;
        try (Stream<Path> walk = Files.walk(directory)) {
            entries = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path entry : entries) {
            Files.deleteIfExists(entry);
        }
    }
}
