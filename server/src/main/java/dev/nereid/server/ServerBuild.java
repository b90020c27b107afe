package dev.nereid.server;

import dev.nereid.server.plugin.SpiVersion;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;

/**
 * What the build wrote into the server. Immutable.
 *
 * @param version the version of the server
 * @param spi the version of the backend SPI that it was built with
 */
record ServerBuild(String version, SpiVersion spi) {
    private static final String RESOURCE = "build.properties";

    static ServerBuild read() {
        Properties properties = new Properties();
        try (InputStream in = ServerBuild.class.getResourceAsStream(RESOURCE)) {
            if (in == null) {
                throw new IllegalStateException(RESOURCE + ": not found (expected: beside " + ServerBuild.class + ")");
            }
            properties.load(in);
        } catch (IOException e) {
            throw new UncheckedIOException(RESOURCE + ": cannot be read", e);
        }
        String spi = properties.getProperty("backend.spi.version", "");
        return new ServerBuild(
                properties.getProperty("version", ""),
                SpiVersion.parse(spi)
                        .orElseThrow(() -> new IllegalStateException(
                                RESOURCE + ": backend.spi.version: " + spi + " (expected: a version)")));
    }
}
