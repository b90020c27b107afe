package dev.nereid.backend.pytorch;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;

/** A model of texts that batches. */
final class PyTorchStringContractTest extends BackendContract {
    @TempDir
    private static Path directory;

    @Override
    protected BackendProvider provider() {
        return new PyTorchBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModels.of(
                        directory,
                        TestModels.script(
                                "def forward(self, a: List[str]) -> List[str]:\n    return [t.upper() for t in a]"),
                        ModelSettings.builder("m", 1)
                                .maxBatchSize(8)
                                .input(TensorSpec.of("a", DataType.BYTES, Shape.of(1))
                                        .withReshape(Shape.SCALAR))
                                .output(TensorSpec.of("OUT__0", DataType.BYTES, Shape.of(1))
                                        .withReshape(Shape.SCALAR))
                                .build())
                .with(upper("some text", "SOME TEXT"))
                .with(upper("", ""))
                .with(upper("ab", "AB"));
    }

    private static ContractExample upper(String text, String expected) {
        return ContractExample.request()
                .input("a", Shape.of(1), text)
                .output("OUT__0", Tensor.ofStrings(Shape.of(1), List.of(expected)));
    }
}
