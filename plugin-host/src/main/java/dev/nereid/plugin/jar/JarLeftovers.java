package dev.nereid.plugin.jar;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Removes unneeded entries from a directory of jar copies or unpacked plugin files. Entries are unneeded if no process
 * has used their plugin for some time, or if an interrupted process left them. Immutable; blocks.
 */
final class JarLeftovers {
    /** How long a copy is kept that no process uses, so that other versions of a server find it. */
    static final Duration UNUSED = Duration.ofDays(7);

    /** How long incomplete copies are kept. A copy takes seconds. */
    static final Duration INCOMPLETE = Duration.ofHours(1);

    /** How many entries one start removes. */
    static final int MAX_REMOVED = 100;

    private static final Logger LOG = LoggerFactory.getLogger(JarLeftovers.class);
    private static final Pattern COPY = Pattern.compile("([0-9a-f]{16,128})");

    /** The name of a plugin, and the digest of its jars. */
    private static final Pattern CACHE = Pattern.compile(".+-([0-9a-f]{32})");

    private static final Pattern TEMPORARY = Pattern.compile("\\.(new|old|owner)-.*");

    private final Path root;
    private final Pattern names;
    private final JarUses uses;

    private JarLeftovers(Path root, Pattern names, JarUses uses) {
        this.root = root;
        this.names = names;
        this.uses = uses;
    }

    /** Of a directory with copies of jars, named by their digests. */
    static JarLeftovers ofCopies(Path root, JarUses uses) {
        return new JarLeftovers(root, COPY, uses);
    }

    /** Of the directory with the cache directories of plugins. A plugin's is in use as long as the copies of its jars. */
    static JarLeftovers ofCaches(Path root, JarUses uses) {
        return new JarLeftovers(root, CACHE, uses);
    }

    /** Removes the entries that are not needed at a time. Failures are logged; the next start tries again. */
    void remove(Instant now) {
        if (!Files.isDirectory(root, LinkOption.NOFOLLOW_LINKS) || !Files.isWritable(root)) {
            return;
        }
        int removed = 0;
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(root)) {
            for (Path entry : entries) {
                if (removed >= MAX_REMOVED) {
                    return;
                }
                removed += remove(entry, now) ? 1 : 0;
            }
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("directory", root)
                    .setCause(e)
                    .log("old files of plugins could not be searched ({})", root);
        }
    }

    private boolean remove(Path entry, Instant now) {
        String name = String.valueOf(entry.getFileName());
        try {
            if (TEMPORARY.matcher(name).matches()) {
                Instant changed = Files.getLastModifiedTime(entry, LinkOption.NOFOLLOW_LINKS)
                        .toInstant();
                if (changed.isBefore(now.minus(INCOMPLETE))) {
                    JarCopies.delete(entry);
                    return true;
                }
                return false;
            }
            Matcher matcher = names.matcher(name);
            if (matcher.matches()
                    && uses.removeUnused(matcher.group(1), now.minus(UNUSED), () -> JarCopies.delete(entry))) {
                LOG.atInfo()
                        .addKeyValue("directory", entry)
                        .log("files of a plugin that is not used removed ({})", entry);
                return true;
            }
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("directory", entry)
                    .setCause(e)
                    .log("old files of plugins could not be removed ({})", entry);
        }
        return false;
    }
}
