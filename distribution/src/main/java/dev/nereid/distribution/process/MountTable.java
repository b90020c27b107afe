package dev.nereid.distribution.process;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The mounted file systems of this process, as Linux describes them. Immutable. */
public final class MountTable {
    private static final Path FILE = Path.of("/proc/self/mountinfo");
    private static final int MOUNT_POINT = 4;
    private static final int OPTIONS = 5;

    /** Spaces and some others are written as {@code \040}. */
    private static final Pattern ESCAPED = Pattern.compile("\\\\([0-7]{3})");

    /** A mounted file system. */
    private record Mount(Path point, boolean noexec) {}

    private final List<Mount> mounts;

    private MountTable(List<Mount> mounts) {
        this.mounts = List.copyOf(mounts);
    }

    /** Returns the file systems of this process; none where they cannot be read. */
    public static MountTable ofThisProcess() {
        try {
            return of(Files.readAllLines(FILE, StandardCharsets.ISO_8859_1));
        } catch (IOException e) {
            return new MountTable(List.of()); // not Linux, or no /proc
        }
    }

    /** Reads the lines of {@code /proc/self/mountinfo}. */
    public static MountTable of(List<String> lines) {
        List<Mount> mounts = new ArrayList<>();
        for (String line : lines) {
            String[] fields = line.split(" ", -1);
            if (fields.length > OPTIONS) {
                mounts.add(new Mount(
                        Path.of(unescaped(fields[MOUNT_POINT])),
                        Arrays.asList(fields[OPTIONS].split(",", -1)).contains("noexec")));
            }
        }
        return new MountTable(mounts);
    }

    private static String unescaped(String text) {
        byte[] bytes = ESCAPED.matcher(text)
                .replaceAll(found ->
                        Matcher.quoteReplacement(String.valueOf((char) Integer.parseInt(found.group(1), Byte.SIZE))))
                .getBytes(StandardCharsets.ISO_8859_1);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Returns whether code in the files of a directory cannot be mapped for execution. It need not exist. */
    public boolean isNoexec(Path directory) {
        Path absolute = directory.toAbsolutePath().normalize();
        Mount found = null;
        for (Mount mount : mounts) {
            // Of several at one place, the last one hides the others.
            if (absolute.startsWith(mount.point())
                    && (found == null
                            || mount.point().getNameCount() >= found.point().getNameCount())) {
                found = mount;
            }
        }
        return found != null && found.noexec();
    }
}
