package dev.nereid.examples.implicitstate;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.time.Duration;

final class ImplicitStateContractTest extends BackendContract {
    private static final Shape ONE = Shape.of(1);

    @Override
    protected BackendProvider provider() {
        return new ImplicitStateBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("implicit_state", 1)
                        .input(TensorSpec.of("INPUT", DataType.INT32, ONE))
                        .input(TensorSpec.of("TEST_CASE", DataType.INT32, ONE))
                        .output(TensorSpec.of("OUTPUT", DataType.INT32, ONE))
                        .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(5))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.FP32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_READY, "READY", DataType.FP32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_END, "END", DataType.FP32))
                                .with(StateSpec.of("INPUT_STATE", "OUTPUT_STATE", DataType.INT32, ONE)))
                        .build())
                .with(request(1, 7).output("OUTPUT", ONE, 7))
                .with(request(9, 7).failure("input 'TEST_CASE': 9 (expected: 0 to 3)"))
                .with(request(3, 7).failure("use_growable_memory"))
                .withSequence(
                        1, request(1, 3).output("OUTPUT", ONE, 3), request(1, 5).output("OUTPUT", ONE, 5));
    }

    private static ContractExample request(int testCase, int number) {
        return ContractExample.request().input("INPUT", ONE, number).input("TEST_CASE", ONE, testCase);
    }
}
