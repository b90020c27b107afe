package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.cuda.Gpu;
import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.contract.ContractModel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** The backend without TensorRT and without a GPU: each plan is a {@link FakeEngine} with the same tensors. */
record FakeTensorRt(HostDriver driver, List<EngineTensor> tensors) implements BackendProvider, TensorRtRuntime {
    /** Puts a model with a plan on GPU 0. */
    static ContractModel model(Path directory, ModelSettings settings) {
        try {
            Files.writeString(directory.resolve("model.plan"), "plan");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return ContractModel.of(settings).in(directory, directory).onGpu(0);
    }

    @Override
    public String name() {
        return "tensorrt";
    }

    @Override
    public Backend create(BackendContext context) {
        List<Gpu> gpus = List.of(new Gpu(0, "fake", "GPU-0", 9, 0, 1L << 36));
        return new TensorRtBackend(
                this,
                new GpuDiscovery(gpus, "one GPU", Optional.of(driver.driver())),
                new EngineCache(context.cacheDirectory().resolve("engines")));
    }

    @Override
    public String version() {
        return "10.6.0";
    }

    @Override
    public Engine deserialize(MemorySegment plan) {
        return new FakeEngine(driver, 1, tensors.toArray(EngineTensor[]::new));
    }

    @Override
    public byte[] build(BuildRequest request) {
        return new byte[] {1};
    }
}
