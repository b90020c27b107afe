package dev.nereid.spi.function;

import static java.util.stream.Collectors.joining;

import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The annotations of one function. Immutable.
 *
 * <p>Read from a class when the server asks for its name and completion, and from the source by the annotation processor:
 * both report the same problems.
 */
record FunctionDeclaration(BackendFunction function, List<Input> inputs, List<Output> outputs) {
    /** As the server checks it. */
    private static final Pattern NAME = Pattern.compile("[a-z0-9_-]+");

    /**
     * A mistake in an annotation.
     *
     * @param index its position among annotations of the type
     * @param message the value and the expected one
     */
    record Problem(Class<?> annotation, int index, String message) {}

    /** Copies the lists. */
    FunctionDeclaration {
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
    }

    /**
     * Reads the annotations of a class.
     *
     * @throws IllegalStateException if they declare no function
     */
    static FunctionDeclaration of(Class<?> type) {
        @Nullable BackendFunction function = type.getDeclaredAnnotation(BackendFunction.class);
        if (function == null) {
            throw new IllegalStateException("class " + type.getName() + ": annotation @BackendFunction: missing"
                    + " (expected: @BackendFunction(name = \"…\"), or a method name())");
        }
        FunctionDeclaration declaration = new FunctionDeclaration(
                function,
                List.of(type.getDeclaredAnnotationsByType(Input.class)),
                List.of(type.getDeclaredAnnotationsByType(Output.class)));
        List<Problem> problems = declaration.problems();
        if (!problems.isEmpty()) {
            throw new IllegalStateException("class " + type.getName() + ": "
                    + problems.stream().map(Problem::message).collect(joining("; ")));
        }
        return declaration;
    }

    /**
     * Returns the completion by the annotations of a class; an empty one without annotations.
     *
     * @throws IllegalStateException if they declare no function
     */
    static ModelCompletion completion(Class<?> type) {
        return Stream.of(BackendFunction.class, Input.class, Output.class)
                        .allMatch(annotation -> type.getDeclaredAnnotationsByType(annotation).length == 0)
                ? ModelCompletion.EMPTY
                : of(type).completion();
    }

    String name() {
        return function.name();
    }

    /** Returns whether tensors or batching are declared. */
    boolean completes() {
        return function.maxBatchSize() != BackendFunction.AS_CONFIGURED
                || function.dynamicBatching()
                || !inputs.isEmpty()
                || !outputs.isEmpty();
    }

    ModelCompletion completion() {
        ModelCompletion completion = ModelCompletion.EMPTY;
        if (function.maxBatchSize() != BackendFunction.AS_CONFIGURED) {
            completion = completion
                    .withProposedMaxBatchSize(function.maxBatchSize())
                    .withMaxBatchSizeLimit(function.maxBatchSize());
        }
        for (Input input : inputs) {
            TensorSpec spec = TensorSpec.of(input.name(), input.type(), Shape.of(input.dims()));
            spec = input.optional() ? spec.with(TensorSpec.Trait.OPTIONAL) : spec;
            completion = completion.withInput(input.ragged() ? spec.with(TensorSpec.Trait.RAGGED) : spec);
        }
        for (Output output : outputs) {
            completion = completion.withOutput(output.name(), output.type(), output.dims());
        }
        return function.dynamicBatching() ? completion.withDynamicBatching() : completion;
    }

    /** Returns what no model can have; empty if all is well. */
    List<Problem> problems() {
        List<Problem> problems = new ArrayList<>();
        checkFunction(problems);
        Set<String> inputNames = new HashSet<>();
        for (int i = 0; i < inputs.size(); i++) {
            Input input = inputs.get(i);
            check(problems, Input.class, i, input.name(), input.dims(), inputNames::add);
            if (input.ragged() && function.maxBatchSize() == 0) {
                problems.add(
                        new Problem(
                                Input.class,
                                i,
                                label(Input.class, input.name())
                                        + "ragged: true (expected: false, since maxBatchSize = 0 says that there are no batches)"));
            }
        }
        Set<String> outputNames = new HashSet<>();
        for (int i = 0; i < outputs.size(); i++) {
            Output output = outputs.get(i);
            check(problems, Output.class, i, output.name(), output.dims(), outputNames::add);
        }
        return problems;
    }

    private void checkFunction(List<Problem> problems) {
        String where = "annotation @BackendFunction: ";
        if (!NAME.matcher(function.name()).matches()) {
            problems.add(new Problem(
                    BackendFunction.class,
                    0,
                    where + "name: \"" + function.name() + "\" (expected: lower-case letters, digits, _ and -)"));
        }
        if (function.maxBatchSize() < BackendFunction.AS_CONFIGURED) {
            problems.add(new Problem(
                    BackendFunction.class,
                    0,
                    where + "maxBatchSize: " + function.maxBatchSize()
                            + " (expected: 0 or more, or no value to leave it to the configuration)"));
        }
        if (function.dynamicBatching() && function.maxBatchSize() == 0) {
            problems.add(new Problem(
                    BackendFunction.class,
                    0,
                    where + "dynamicBatching: true (expected: false, since maxBatchSize = 0 says that there are no"
                            + " batches)"));
        }
    }

    private static void check(
            List<Problem> problems, Class<?> annotation, int index, String name, long[] dims, Predicate<String> isNew) {
        String where = label(annotation, name);
        if (name.isEmpty()) {
            problems.add(new Problem(annotation, index, where + "name: \"\" (expected: the name of a tensor)"));
        } else if (!isNew.test(name)) {
            problems.add(new Problem(annotation, index, where + "declared twice (expected: each name once)"));
        }
        if (dims.length == 0 || Arrays.stream(dims).anyMatch(dim -> dim < 1 && dim != Shape.VARIABLE)) {
            problems.add(new Problem(
                    annotation,
                    index,
                    where + "dims: " + Arrays.toString(dims)
                            + " (expected: at least one, each 1 or more, or -1 for any size)"));
        }
    }

    private static String label(Class<?> annotation, String name) {
        return "annotation @" + annotation.getSimpleName() + " '" + name + "': ";
    }
}
