package dev.nereid.backend.natives;

import java.io.IOException;
import java.io.Serial;
import java.nio.file.Path;

/** A jar with libraries cannot be read as a jar, or a library in it does not have its checksum. */
final class DamagedJarException extends IOException {
    @Serial
    private static final long serialVersionUID = 1L;

    DamagedJarException(Path jar, IOException cause) {
        super(jar.getFileName() + ": damaged (expected: a jar)", cause);
    }
}
