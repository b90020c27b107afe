package dev.nereid.examples.dynasequence;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;

final class DynaSequenceContractTest extends BackendContract {
    private static final Shape ONE = Shape.of(1, 1);

    @Override
    protected BackendProvider provider() {
        return new DynaSequenceBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("dyna_sequence", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("INPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
                        .output(TensorSpec.of("OUTPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
                        .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.OLDEST, Duration.ofSeconds(5))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.INT32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_END, "END", DataType.INT32))
                                .with(new ControlInput(ControlInput.Kind.SEQUENCE_CORRID, "CORRID", DataType.UINT64)))
                        .build())
                .with(example(7, 0).output("OUTPUT", Shape.of(1, 2), 3, 4))
                .with(example(8, 1).output("OUTPUT", Shape.of(1, 2), 11, 12));
    }

    private static ContractExample example(long id, int end) {
        return ContractExample.request()
                .input("INPUT", Shape.of(1, 2), 3, 4)
                .input("START", ONE, 1)
                .input("END", ONE, end)
                .input(
                        "CORRID",
                        Tensor.of(DataType.UINT64, ONE, Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, id)))
                .sequence(new Sequence(new Sequence.Id.Numeric(id), true, end == 1));
    }
}
