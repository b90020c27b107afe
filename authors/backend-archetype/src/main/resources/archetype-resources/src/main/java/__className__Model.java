package ${package};

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A loaded version of a model: what its instances share. Immutable. */
final class ${className}Model implements Model {
    private final float scale;

    private ${className}Model(float scale) {
        this.scale = scale;
    }

    static ${className}Model read(Path file) {
        try {
            return new ${className}Model(Float.parseFloat(Files.readString(file).strip()));
        } catch (IOException | NumberFormatException e) {
            throw new BackendException(ErrorCode.INVALID_ARGUMENT, file.getFileName() + ": " + e + " (expected: a number)", e);
        }
    }

    @Override
    public ModelInstance newInstance(InstanceContext context) {
        return new ${className}Instance(scale);
    }

    @Override
    public void close() {
        // Frees what load has made, after the last instance.
    }
}
