package dev.nereid.benchmarks.pytorch;

import java.nio.ByteBuffer;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.InferenceMode;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.StringVectorOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * A module that is called with one tensor, as a program does it that uses the presets: the input is wrapped, the module is
 * called, and the first number of the result is read. Confined to one thread.
 *
 * <p>Loaded beside the presets that a server of this process has loaded, hence with types of the JDK alone, not of this
 * program.
 */
public final class TorchCall implements Runnable, AutoCloseable {
    private final JitModule module;
    private final BytePointer data;
    private final long[] dims;
    private final TensorOptions options = new TensorOptions(ScalarType.Float);

    /** Loads a module, to be called with the FP32 elements of its input. */
    public TorchCall(String file, byte[] input, long[] dims) {
        try (InferenceMode _ = new InferenceMode(true);
                StringVectorOptional kept = new StringVectorOptional();
                JitModule loaded = torch.load(file)) {
            module = torch.freeze(loaded, kept, false); // as the server does it
        }
        data = new BytePointer(
                ByteBuffer.allocateDirect(input.length).put(input).flip());
        this.dims = dims.clone();
    }

    /** Sets the threads that calls of the current thread compute with. */
    public static void threads(int threads) {
        if (torch.get_num_threads() != threads) {
            torch.set_num_threads(threads);
        }
    }

    /** Calls the module once. */
    @Override
    public void run() {
        try (InferenceMode _ = new InferenceMode(true);
                Tensor tensor = torch.from_blob(data, dims, options);
                IValue value = new IValue(tensor);
                IValueVector arguments = new IValueVector(value);
                IValue result = module.forward(arguments)) {
            if (Float.isNaN(result.toTensor().data_ptr_float().get())) {
                throw new IllegalStateException("NaN");
            }
        }
    }

    @Override
    public void close() {
        module.close();
        data.close();
    }
}
