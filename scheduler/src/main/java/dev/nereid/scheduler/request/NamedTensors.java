package dev.nereid.scheduler.request;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Finds tensors by name in short lists. Static functions only. */
public final class NamedTensors {
    private NamedTensors() {}

    /** Returns the names in order; immutable. */
    public static List<String> names(List<NamedTensor> tensors) {
        if (tensors.size() == 1) {
            return List.of(tensors.getFirst().name());
        }
        List<String> names = new ArrayList<>(tensors.size());
        for (NamedTensor tensor : tensors) {
            names.add(tensor.name());
        }
        return Collections.unmodifiableList(names);
    }

    /** Returns the first tensor of a name; {@code null} if there is none. */
    public static @Nullable Tensor find(List<NamedTensor> tensors, String name) {
        for (int i = 0; i < tensors.size(); i++) {
            NamedTensor tensor = tensors.get(i);
            if (tensor.name().equals(name)) {
                return tensor.tensor();
            }
        }
        return null;
    }
}
