package dev.nereid.examples.repeat;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;

final class RepeatContractTest extends BackendContract {
    private static final Shape ONE = Shape.of(1);
    private static final Shape ANY = Shape.of(Shape.VARIABLE);

    @Override
    protected BackendProvider provider() {
        return new RepeatBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("repeat", 1)
                        .decoupled(true)
                        .input(TensorSpec.of("IN", DataType.INT32, ANY))
                        .input(TensorSpec.of("DELAY", DataType.UINT32, ANY))
                        .input(TensorSpec.of("WAIT", DataType.UINT32, ONE))
                        .output(TensorSpec.of("OUT", DataType.INT32, ONE))
                        .output(TensorSpec.of("IDX", DataType.UINT32, ONE))
                        .build())
                .with(ContractExample.request()
                        .input("IN", Shape.of(2), 7, 8)
                        .input("DELAY", unsigned(0, 1))
                        .input("WAIT", unsigned(0))
                        .output("OUT", ONE, 7)
                        .output("IDX", unsigned(0))
                        .response()
                        .output("OUT", ONE, 8)
                        .output("IDX", unsigned(1)))
                .with(ContractExample.request()
                        .input("IN", Shape.of(2), 7, 8)
                        .input("DELAY", unsigned(0))
                        .input("WAIT", unsigned(0))
                        .failure("expected IN and DELAY shape to match"));
    }

    private static Tensor unsigned(int... numbers) {
        Shape shape = Shape.of(numbers.length);
        return Tensor.of(
                DataType.UINT32, shape, ContractExample.ints(shape, numbers).data());
    }
}
