package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/** Compares responses with what their requests expect. Static functions only. */
final class ContractChecks {
    private ContractChecks() {}

    /** Fails if a request did not get the expected response. */
    static void check(ContractExample expected, LocalResponse actual) {
        if (expected.failure().isPresent()) {
            checkFailure(expected.failure().get(), actual.failure());
            if (!expected.responses().isEmpty()) {
                checkResponses(expected, actual);
            }
            return;
        }
        actual.failure().ifPresent(error -> {
            throw new AssertionError("request failed (expected: a response): " + error, error);
        });
        checkResponses(expected, actual);
        checkTensors("state", 0, expected.states(), actual.states());
    }

    private static void checkResponses(ContractExample expected, LocalResponse actual) {
        if (expected.responses().size() != actual.responses().size()
                && !(expected.responses().isEmpty() && isOneWithoutOutputs(actual))) {
            throw new AssertionError("responses: " + actual.responses().size() + " (expected: "
                    + expected.responses().size() + ")");
        }
        for (int i = 0; i < expected.responses().size(); i++) {
            checkTensors(
                    "output", i, expected.responses().get(i), actual.responses().get(i));
        }
    }

    private static boolean isOneWithoutOutputs(LocalResponse actual) {
        return actual.responses().size() == 1 && actual.responses().getFirst().isEmpty();
    }

    private static void checkFailure(String text, Optional<BackendException> failure) {
        String message =
                failure.map(error -> String.valueOf(error.getMessage())).orElse("");
        if (failure.isEmpty() || !message.contains(text)) {
            throw new AssertionError("failure: " + failure + " (expected: a message with '" + text + "')");
        }
    }

    private static void checkTensors(String role, int response, Map<String, Tensor> expected, Map<String, Tensor> all) {
        expected.forEach((name, tensor) -> {
            Tensor actual = all.get(name);
            if (actual == null) {
                throw new AssertionError(
                        role + " '" + name + "' of response " + response + ": missing (expected: " + tensor + ")");
            }
            LocalTensors.checkEqual(role + " '" + name + "' of response " + response, tensor, actual);
        });
    }

    /** Returns whether two requests can be in one batch without ragged inputs. */
    static boolean fitTogether(ContractExample first, ContractExample second) {
        return items(first).equals(items(second));
    }

    /** Returns the shapes of the inputs by name, without the batch dimension. */
    private static Map<String, Shape> items(ContractExample example) {
        return example.inputs().entrySet().stream()
                .collect(Collectors.toMap(Map.Entry::getKey, input -> item(input.getValue())));
    }

    private static Shape item(Tensor tensor) {
        return tensor.shape().rank() == 0 ? tensor.shape() : tensor.shape().dropFirst();
    }

    /**
     * Returns a request without content in the place of another, as from the server: all inputs are 0, or empty texts, but
     * for shape tensors. Its control inputs are added later.
     */
    static ContractExample nullRequest(ModelSettings model, ContractExample example) {
        ContractExample empty = ContractExample.request();
        example.inputs().forEach((name, tensor) -> empty.input(name, isShape(model, name) ? tensor : zeros(tensor)));
        return empty;
    }

    private static boolean isShape(ModelSettings model, String input) {
        return model.input(input)
                .filter(spec -> spec.is(TensorSpec.Trait.SHAPE_TENSOR))
                .isPresent();
    }

    private static Tensor zeros(Tensor like) {
        long size = like.type() == DataType.BYTES ? like.shape().elementCount() * Integer.BYTES : like.byteSize();
        return Tensor.of(
                like.type(),
                like.shape(),
                Arena.ofAuto().allocate(Math.max(1, size), Long.BYTES).asSlice(0, size));
    }

    static long byteSize(ContractExample example) {
        return example.inputs().values().stream().mapToLong(Tensor::byteSize).sum();
    }

    /** Fails if a tensor that the backend completes differs from that of the configuration. */
    static void agree(String role, List<TensorSpec> configured, List<TensorSpec> completed) {
        for (TensorSpec spec : configured) {
            Optional<TensorSpec> found = completed.stream()
                    .filter(candidate -> candidate.name().equals(spec.name()))
                    .findFirst();
            if (!completed.isEmpty() && (found.isEmpty() || found.get().type() != spec.type())) {
                throw new AssertionError(role + " '" + spec.name() + "': completed as "
                        + found.map(TensorSpec::toString).orElse("nothing") + " (expected: " + spec + ")");
            }
        }
    }
}
