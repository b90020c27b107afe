package dev.nereid.backend.pytorch;

import dev.nereid.backend.pytorch.archive.TorchFile;
import dev.nereid.backend.pytorch.archive.TorchFileException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.nio.file.Files;
import java.nio.file.Path;

/** The file of a model, within the directory of its version. Immutable. */
record PyTorchModelFile(Path path, TorchFile content) {
    private static final String DEFAULT_FILENAME = "model.pt";
    private static final String INSTEAD = "(expected: TorchScript in model.pt; or a model.py of the backend python)";

    /** Finds and reads {@code default_model_filename}, or else {@code model.pt}; fails without one of TorchScript. */
    static PyTorchModelFile of(ModelContext context) {
        String model = context.settings().name();
        refuseOtherRuntimes(context, model);
        String filename = context.settings().modelFilename();
        Path root = context.versionDirectory().toAbsolutePath().normalize();
        Path file =
                root.resolve(filename.isEmpty() ? DEFAULT_FILENAME : filename).normalize();
        if (!file.startsWith(root) || file.equals(root)) {
            throw PyTorchErrors.invalid("unable to load model '" + model + "', default_model_filename: '" + filename
                    + "' (expected: a path within the model's directory)");
        }
        String shown = model + "/" + context.settings().version() + "/" + root.relativize(file);
        if (!Files.exists(file)) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE, "unable to find '" + shown + "' for model instance '" + model + "'");
        }
        if (!Files.isRegularFile(file)) { // to open a pipe would wait for its writer
            throw PyTorchErrors.cannotLoad(model, "'" + shown + "' is not a file (expected: one of TorchScript)");
        }
        try {
            return new PyTorchModelFile(file, TorchFile.read(file));
        } catch (TorchFileException e) {
            throw PyTorchErrors.cannotLoad(model, "'" + shown + "': " + e.getMessage());
        }
    }

    private static void refuseOtherRuntimes(ModelContext context, String model) {
        if (context.settings().value("platform").orElse("").equals("torch_aoti")) {
            throw PyTorchErrors.invalid("unable to load model '" + model
                    + "', platform: 'torch_aoti': packages of AOT Inductor are not executed " + INSTEAD);
        }
        String runtime = context.settings().value("runtime").orElse("");
        if (!runtime.isEmpty()) {
            throw PyTorchErrors.invalid("unable to load model '" + model + "', runtime: '" + runtime
                    + "': models of this backend are executed by PyTorch itself " + INSTEAD);
        }
    }
}
