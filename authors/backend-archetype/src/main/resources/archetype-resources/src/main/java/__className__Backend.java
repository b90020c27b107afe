package ${package};

import dev.nereid.spi.Backend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Shape;
import java.util.Optional;

/** The framework: what all models share, from the first one to the close of the last one. */
final class ${className}Backend implements Backend {
    /** The settings that a configuration may leave out. A framework reads them from the files of the model. */
    private static final ModelCompletion COMPLETION = ModelCompletion.EMPTY
            .withInput("INPUT", DataType.FP32, Shape.VARIABLE)
            .withOutput("OUTPUT", DataType.FP32, Shape.VARIABLE)
            .withProposedMaxBatchSize(8);

    @Override
    public Optional<ModelCompletion> complete(ModelContext model) {
        return Optional.of(COMPLETION);
    }

    @Override
    public Model load(ModelContext model) {
        return ${className}Model.read(model.versionDirectory().resolve("scale.txt"));
    }

    @Override
    public void close() {
        // Ends what the framework has started.
    }
}
