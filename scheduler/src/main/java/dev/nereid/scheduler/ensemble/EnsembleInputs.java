package dev.nereid.scheduler.ensemble;

import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.NamedTensors;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.util.List;

/** The inputs of a request to an ensemble as values of tensors. Static functions only. */
final class EnsembleInputs {
    private EnsembleInputs() {}

    /**
     * Returns the value of each input, in the order of the configuration. The memory of the request is freed when all of
     * them are released; the request is retained until then.
     */
    static TensorValue[] of(ModelSettings settings, ScheduledRequest request) {
        List<TensorSpec> specs = settings.inputs();
        RequestInputs inputs = request.checked().inputs();
        request.retain();
        request.lendInputs(); // a step may read them after its response, as may a request that it sent
        ReferenceCountedMemory all = ReferenceCountedMemory.of(
                () -> {
                    request.freeUnusedInputs();
                    request.release();
                },
                null);
        TensorValue[] values = new TensorValue[specs.size()];
        for (int i = 0; i < values.length; i++) {
            Tensor tensor = NamedTensors.find(inputs, specs.get(i).name());
            if (tensor == null) {
                values[i] = TensorValue.absent(null);
            } else {
                all.retain();
                boolean batches = settings.batches() && !specs.get(i).is(TensorSpec.Trait.SHAPE_TENSOR);
                ReferenceCountedMemory memory = ReferenceCountedMemory.of(() -> {}, all);
                values[i] = new TensorValue(tensor, memory, batches ? inputs.batchSize() : 0, null);
            }
        }
        all.release();
        return values;
    }
}
