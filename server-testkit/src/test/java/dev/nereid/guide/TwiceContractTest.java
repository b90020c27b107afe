package dev.nereid.guide;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;

/** Twice keeps the contract of backends. */
final class TwiceContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new Twice();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("doubled", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("INPUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .output(TensorSpec.of("OUTPUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .build())
                .with(ContractExample.request()
                        .input("INPUT", Shape.of(1, 2), 1f, 2.5f)
                        .output("OUTPUT", Shape.of(1, 2), 2f, 5f))
                .with(ContractExample.request()
                        .input("INPUT", Shape.of(2, 1), 3f, 4f)
                        .output("OUTPUT", Shape.of(2, 1), 6f, 8f));
    }
}
