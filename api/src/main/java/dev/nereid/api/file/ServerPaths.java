package dev.nereid.api.file;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Removes the places of files on this machine from error texts for clients. Static functions only.
 *
 * <p>Files of a repository are shown by their paths within it, all others by their names.
 */
public final class ServerPaths {
    /** The place before an absolute path; not within a URL or another path. */
    private static final String BEGIN = "(?<![\\p{L}\\p{N}_/.%*~-])";

    private static final Pattern ABSOLUTE =
            Pattern.compile(BEGIN + "/[^/\\s'\"`:,;()\\[\\]{}<>|][^\\s'\"`:,;()\\[\\]{}<>|]*+");

    private ServerPaths() {}

    /**
     * Shows paths below a directory by their paths within it.
     *
     * @param text any text
     * @param root the directory
     * @return the text without the path of the directory
     */
    public static String within(String text, Path root) {
        Set<String> places = new TreeSet<>();
        places.add(root.toString());
        places.add(root.toAbsolutePath().normalize().toString());
        try {
            places.add(root.toRealPath().toString());
        } catch (IOException _) { // it is gone: there is no other name for it
        }
        String shown = text;
        for (String place : places) {
            if (place.length() > 1 && place.startsWith("/")) {
                shown = Pattern.compile(BEGIN + Pattern.quote(place + "/"))
                        .matcher(shown)
                        .replaceAll("");
            }
        }
        return shown;
    }

    /**
     * Shows absolute paths of two names or more by their last names. For texts of foreign code.
     *
     * @param text any text
     * @param known a text that clients know, such as a configuration; paths in it stay
     * @return the text without directories
     */
    public static String namesAlone(String text, String known) {
        return ABSOLUTE.matcher(text).replaceAll(found -> {
            String path = found.group();
            boolean stays = known.contains(path);
            return Matcher.quoteReplacement(stays ? path : name(path));
        });
    }

    private static String name(String path) {
        String trimmed = path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
        int last = trimmed.lastIndexOf('/');
        return last <= 0 ? path : trimmed.substring(last + 1);
    }

    /**
     * Describes why a file cannot be used.
     *
     * @param failure the failure; its message may have the file's path
     * @return the reason, without a path
     */
    public static String reason(Exception failure) {
        Throwable cause = failure.getCause() instanceof IOException io ? io : failure;
        if (cause instanceof NoSuchFileException) {
            return "No such file or directory";
        }
        return cause instanceof FileSystemException file && file.getReason() != null
                ? file.getReason()
                : cause.getClass().getSimpleName();
    }
}
