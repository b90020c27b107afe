package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.CommandContext;
import dev.nereid.server.storage.StorageLimits;
import dev.nereid.server.storage.StorageOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** Remote model repositories of the command line. Written by the command line reader, then only read. */
final class StorageFlags {
    private static final Pattern URL = Pattern.compile("[A-Za-z][A-Za-z0-9+.-]*://.*", Pattern.DOTALL);

    private final List<String> urls = new ArrayList<>();
    private final List<Path> directories = new ArrayList<>();

    /** Returns whether a model repository is a URL; other texts are directories. */
    static boolean isUrl(String repository) {
        return URL.matcher(repository).matches();
    }

    /** Adds the flag of the plugins' directories. */
    void declare(Flags flags) {
        flags.add("--storage-directory", FlagValue.DIRECTORY, directories::add)
                .help("A directory of storage plugins besides the server's own. May be given several times.");
    }

    /** Adds a repository. */
    void add(String url) {
        urls.add(url);
    }

    /** Returns whether there is no remote repository. */
    boolean isEmpty() {
        return urls.isEmpty();
    }

    /**
     * Returns the options of the remote repositories.
     *
     * @param unpacked the directory for files that plugins unpack, which holds the local copies too
     */
    StorageOptions options(CommandContext context, Path unpacked) {
        List<Path> searched = new ArrayList<>(directories);
        searched.add(context.paths().home().resolve("storage"));
        return new StorageOptions(
                urls, searched, context.environment(), unpacked.resolve("repositories"), StorageLimits.DEFAULT);
    }
}
