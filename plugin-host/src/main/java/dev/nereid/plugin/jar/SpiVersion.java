package dev.nereid.plugin.jar;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A version of the backend SPI. Immutable.
 *
 * @param major changes when a plugin must be changed
 * @param minor changes when something is added
 */
public record SpiVersion(int major, int minor) {
    private static final Pattern TEXT = Pattern.compile("(\\d{1,6})\\.(\\d{1,6})(\\..*)?");

    /**
     * Reads a version.
     *
     * @param text for instance {@code 1.3}; anything after a second point is ignored
     * @return the version, or empty if the text is none
     */
    public static Optional<SpiVersion> parse(String text) {
        Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? Optional.of(new SpiVersion(Integer.parseInt(matcher.group(1)), Integer.parseInt(matcher.group(2))))
                : Optional.empty();
    }

    /** Returns whether a plugin built for {@code other} works on this version. */
    boolean accepts(SpiVersion other) {
        return major == other.major && other.minor <= minor;
    }

    @Override
    public String toString() {
        return major + "." + minor;
    }
}
