package dev.nereid.server;

import dev.nereid.plugin.jar.SpiVersion;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;

/**
 * Version information that the build wrote into the server. Immutable.
 *
 * @param spi the version of the backend SPI that it was built with
 */
public record BuildInfo(String version, SpiVersion spi) {
    private static final String RESOURCE = "build.properties";

    public static BuildInfo read() {
        Properties properties = new Properties();
        try (InputStream in = BuildInfo.class.getResourceAsStream(RESOURCE)) {
            if (in == null) {
                throw new IllegalStateException(RESOURCE + ": not found (expected: beside " + BuildInfo.class + ")");
            }
            properties.load(in);
        } catch (IOException e) {
            throw new UncheckedIOException(RESOURCE + ": cannot be read", e);
        }
        String spi = properties.getProperty("backend.spi.version", "");
        return new BuildInfo(
                properties.getProperty("version", ""),
                SpiVersion.parse(spi)
                        .orElseThrow(() -> new IllegalStateException(
                                RESOURCE + ": backend.spi.version: " + spi + " (expected: a version)")));
    }
}
