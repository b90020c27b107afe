package dev.nereid.backend.python;

import dev.nereid.backend.python.environment.Machines;
import dev.nereid.backend.python.environment.ModelFile;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Entry point of the plugin: creates the backend {@code python}, and backends that are written in Python. Immutable.
 *
 * <p>A machine without Python has the backend all the same, since the environment of a model may bring one: the load of
 * a model fails with the missing piece.
 */
public final class PythonProvider implements BackendProvider {
    /** Creates the provider; called by the service loader. */
    public PythonProvider() {}

    @Override
    public String name() {
        return "python";
    }

    /** Claims directories with {@code model.py} and without jars, under their names. */
    @Override
    public Optional<String> claims(Path directory) {
        Path name = directory.toAbsolutePath().normalize().getFileName();
        return name != null && ModelFile.isBackend(directory) ? Optional.of(name.toString()) : Optional.empty();
    }

    /** Returns whether this is a system on which processes of the backend run, without a look for Python. */
    @Override
    public Optional<String> unavailable() {
        return Machines.unsupported().map(machine -> "not available: " + machine);
    }

    @Override
    public Backend create(BackendContext context) {
        return new PythonBackend(context);
    }
}
