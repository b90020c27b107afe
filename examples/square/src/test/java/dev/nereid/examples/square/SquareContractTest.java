package dev.nereid.examples.square;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;

final class SquareContractTest extends BackendContract {
    private static final Shape ONE = Shape.of(1);

    @Override
    protected BackendProvider provider() {
        return new SquareBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("square", 1)
                        .decoupled(true)
                        .input(TensorSpec.of("IN", DataType.INT32, ONE))
                        .output(TensorSpec.of("OUT", DataType.INT32, ONE))
                        .build())
                .with(ContractExample.request()
                        .input("IN", ONE, 2)
                        .output("OUT", ONE, 2)
                        .response()
                        .output("OUT", ONE, 2))
                .with(ContractExample.request().input("IN", ONE, 1).output("OUT", ONE, 1))
                .with(ContractExample.request().input("IN", ONE, 0))
                .with(ContractExample.request().input("IN", Shape.of(2), 1, 2).failure("one element"));
    }
}
