package ${package};

import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Executes batches: OUTPUT = scale * INPUT. Confined to one thread at a time. */
final class ${className}Instance implements ModelInstance {
    private final float scale;

    ${className}Instance(float scale) {
        this.scale = scale;
    }

    @Override
    public void execute(Batch batch) {
        Tensor input = batch.gather("INPUT");
        float[] values = input.floats();
        batch.inputsRead();
        for (int i = 0; i < values.length; i++) {
            values[i] = scale * values[i];
        }
        batch.outputsComputed();
        MemorySegment output = batch.allocate("OUTPUT", DataType.FP32, input.shape()).data();
        MemorySegment.copy(values, 0, output, ValueLayout.JAVA_FLOAT_UNALIGNED, 0, values.length);
    }

    @Override
    public void close() {
        // Frees what newInstance has made.
    }
}
