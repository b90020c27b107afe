package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.EngineFormat;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.backend.tensorrt.runtime.ProfileRange;
import dev.nereid.spi.Shape;
import java.util.List;

/** Tensors of engines for tests. Static functions only. */
final class EngineTensors {
    private EngineTensors() {}

    static EngineTensor input(String name, Shape shape, ProfileRange... ranges) {
        return new EngineTensor(name, true, "kFLOAT", shape, false, EngineFormat.LINEAR, List.of(ranges));
    }

    static EngineTensor output(String name, Shape shape) {
        return new EngineTensor(name, false, "kFLOAT", shape, false, EngineFormat.LINEAR, List.of());
    }

    static EngineTensor shapeTensor(String name, Shape shape, ProfileRange... ranges) {
        return new EngineTensor(name, true, "kINT64", shape, true, EngineFormat.LINEAR, List.of(ranges));
    }

    static ProfileRange range(Shape min, Shape opt, Shape max) {
        return new ProfileRange(min, opt, max);
    }
}
