package dev.nereid.backend.pytorch;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** A model without batches whose script refuses some requests. */
final class PyTorchFailingContractTest extends BackendContract {
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
                                "def forward(self, a: Tensor):\n    assert bool(a.max() <= 100), \"too large\"\n"
                                        + "    return a.cumsum(0)"),
                        TestBackend.vector().build())
                .with(ContractExample.request()
                        .input("a", Shape.of(3), 1f, 2f, 3f)
                        .output("OUT__0", Shape.of(3), 1f, 3f, 6f))
                .with(ContractExample.request().input("a", Shape.of(1), 5f).output("OUT__0", Shape.of(1), 5f))
                .with(ContractExample.request().input("a", Shape.of(1), 101f).failure("too large"));
    }
}
