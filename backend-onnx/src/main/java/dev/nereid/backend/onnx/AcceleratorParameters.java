package dev.nereid.backend.onnx;

import dev.nereid.spi.Parameters;
import java.util.Map;
import java.util.Optional;

/** Parameters of an execution accelerator. Errors name it. Immutable. */
record AcceleratorParameters(String accelerator, Parameters values) implements Parameters {
    static AcceleratorParameters of(String accelerator, Map<String, String> values) {
        return new AcceleratorParameters(accelerator, Parameters.of(values));
    }

    @Override
    public Optional<Object> value(String name) {
        return values.value(name);
    }

    @Override
    public Map<String, Object> asMap() {
        return values.asMap();
    }

    @Override
    public String label(String name) {
        return "parameter '" + name + "' of execution accelerator '" + accelerator + "'";
    }
}
