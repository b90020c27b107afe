package dev.nereid.examples.identity;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;

final class IdentityContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new IdentityBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("identity", 1)
                        .maxBatchSize(64)
                        .input(TensorSpec.of("INPUT0", DataType.FP32, Shape.of(Shape.VARIABLE))
                                .with(TensorSpec.Trait.RAGGED))
                        .output(TensorSpec.of("OUTPUT0", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .build())
                .with(example(Shape.of(1, 2), 1, 2))
                .with(example(Shape.of(2, 2), 3, 4, 5, 6))
                .with(example(Shape.of(1, 3), 7, 8, 9));
    }

    private static ContractExample example(Shape shape, float... numbers) {
        return ContractExample.request().input("INPUT0", shape, numbers).output("OUTPUT0", shape, numbers);
    }
}
