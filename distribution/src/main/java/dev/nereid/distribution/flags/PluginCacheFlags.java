package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.CommandContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;

/** The flag of the directory for files that plugins unpack. Written by the command line reader, then only read. */
final class PluginCacheFlags {
    private static final Set<PosixFilePermission> OWNER_ALONE = EnumSet.of(
            PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);

    private Optional<Path> configured = Optional.empty();

    void declare(Flags flags) {
        flags.add("--plugin-cache-directory", FlagValue.DIRECTORY, v -> configured = Optional.of(v))
                .help("Where plugins unpack native libraries. Default: the first of these that can be written: .cache"
                        + " in the server's plugins, $XDG_CACHE_HOME/nereid, $HOME/.cache/nereid, and one of the"
                        + " user's own in the directory for temporary files.");
    }

    /**
     * Returns the directory. It need not exist; if none is writable, the first candidate is returned, and the plugin
     * that needs it reports the error.
     */
    Path directory(CommandContext context) {
        if (configured.isPresent()) {
            return configured.get();
        }
        Path plugins = context.paths().home().resolve("plugins");
        Path own = plugins.resolve(".cache");
        if (Files.isDirectory(plugins) && isWritableOrCreatable(own)) {
            return own;
        }
        Optional<Path> ofUser = variable(context, "XDG_CACHE_HOME")
                .map(root -> root.resolve("nereid"))
                .filter(PluginCacheFlags::isWritableOrCreatable)
                .or(() -> variable(context, "HOME")
                        .filter(Files::isDirectory)
                        .map(root -> root.resolve(".cache").resolve("nereid"))
                        .filter(PluginCacheFlags::isWritableOrCreatable));
        return ofUser.or(() -> Optional.of(context.paths().temporary()).filter(PluginCacheFlags::isPrivate))
                .orElse(own);
    }

    private static Optional<Path> variable(CommandContext context, String name) {
        return Optional.of(context.environment().getOrDefault(name, ""))
                .filter(value -> !value.isEmpty())
                .map(Path::of);
    }

    /** Returns whether a directory exists and is writable, or can be created. */
    private static boolean isWritableOrCreatable(Path directory) {
        Path existing = directory.toAbsolutePath();
        while (existing != null && !Files.exists(existing)) {
            existing = existing.getParent();
        }
        return existing != null && Files.isDirectory(existing) && Files.isWritable(existing);
    }

    /**
     * Creates a directory, and returns whether only this user has access. The place is shared by all users, and
     * libraries are loaded from the directory.
     */
    private static boolean isPrivate(Path directory) {
        try {
            if (!Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
                Files.createDirectory(directory, PosixFilePermissions.asFileAttribute(OWNER_ALONE));
            }
            Path probe = Files.createTempFile(directory, "owner", "");
            try {
                return Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)
                        && Files.getOwner(directory, LinkOption.NOFOLLOW_LINKS).equals(Files.getOwner(probe))
                        && OWNER_ALONE.containsAll(Files.getPosixFilePermissions(directory, LinkOption.NOFOLLOW_LINKS));
            } finally {
                Files.delete(probe);
            }
        } catch (IOException | UnsupportedOperationException e) {
            return false; // reported by the plugin that needs it
        }
    }
}
