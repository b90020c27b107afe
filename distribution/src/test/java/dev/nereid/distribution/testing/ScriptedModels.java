package dev.nereid.distribution.testing;

import dev.nereid.scripted.ScriptedBackendProvider;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A repository of ensembles whose steps do what the requests say, by the backend {@code scripted}. Confined to the test's
 * thread, except the gates.
 *
 * <p>Each of {@code first}, {@code second} and {@code third} adds 1, 10 and 100; so a value shows which steps it passed.
 */
public final class ScriptedModels {
    /** The tensors of most models, with batches of up to 8. */
    public static final String TENSORS = "max_batch_size: 8\n" + in("INPUT0") + out("OUTPUT0");

    private static final long SECONDS = 60;

    private final Path plugins;
    private final Path gates;
    private final Repository repository;

    /** Packs the backend, and begins an empty repository. */
    public ScriptedModels(Path directory) {
        plugins = GatedPlugin.pack(directory.resolve("plugins"), ScriptedBackendProvider.class);
        repository = new Repository(directory.resolve("models"));
        gates = directory.resolve("gates");
        try {
            Files.createDirectories(gates);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Adds the three steps and the ensemble {@code chain} of them. */
    public ScriptedModels withChain() {
        return step("first", 1, "")
                .step("second", 10, "")
                .step("third", 100, "")
                .chain("chain", "first", "second", "third");
    }

    public Repository repository() {
        return repository;
    }

    /** Returns the directory of the plugin. */
    public Path plugins() {
        return plugins;
    }

    /** Adds a model that adds a number. */
    public ScriptedModels step(String name, int add, String more) {
        return model(name, add, TENSORS + more);
    }

    /** Adds a model of the backend. */
    public ScriptedModels model(String name, int add, String config) {
        repository.model(name, config(add, config));
        return this;
    }

    /** Returns the configuration of a model of the backend. */
    public String config(int add, String config) {
        return "backend: \"scripted\"\n" + parameter("add", "" + add) + parameter("gates", gates.toString())
                + (config.contains("instance_group") ? "" : "instance_group { count: 2 kind: KIND_CPU }\n") + config;
    }

    /** Adds an ensemble whose steps follow one another. */
    public ScriptedModels chain(String name, String... models) {
        return ensemble(name, TENSORS, steps(models));
    }

    /** Returns steps that follow one another. */
    public static String steps(String... models) {
        StringBuilder steps = new StringBuilder();
        for (int i = 0; i < models.length; i++) {
            String from = i == 0 ? "INPUT0" : "tensor" + i;
            String to = i == models.length - 1 ? "OUTPUT0" : "tensor" + (i + 1);
            steps.append(stepOf(models[i], "INPUT0=" + from, "OUTPUT0=" + to));
        }
        return steps.toString();
    }

    /** Adds an ensemble. */
    public ScriptedModels ensemble(String name, String tensors, String steps) {
        repository.model(name, "platform: \"ensemble\"\n" + tensors + "ensemble_scheduling {\n" + steps + "}\n");
        return this;
    }

    /** Returns a step of an ensemble; a map is written as {@code input=tensor}, and pairs are joined by commas. */
    public static String stepOf(String model, String inputs, String outputs) {
        return "step { model_name: \"" + model + "\" model_version: -1 " + maps("input_map", inputs)
                + maps("output_map", outputs) + "}\n";
    }

    private static String maps(String field, String pairs) {
        return Stream.of(pairs.split(",", -1))
                .map(pair -> List.of(pair.split("=", -1)))
                .map(pair -> field + " { key: \"" + pair.getFirst() + "\" value: \"" + pair.getLast() + "\" } ")
                .collect(Collectors.joining());
    }

    /** Returns an input of any number of floats. */
    public static String in(String name) {
        return "input { name: \"" + name + "\" data_type: TYPE_FP32 dims: [ -1 ] }\n";
    }

    /** Returns an input of any number of floats that may be omitted. */
    public static String optional(String name) {
        return in(name).replace(" }", " optional: true }");
    }

    /** Returns an output of any number of floats. */
    public static String out(String name) {
        return "output { name: \"" + name + "\" data_type: TYPE_FP32 dims: [ -1 ] }\n";
    }

    /** Returns a parameter of a model. */
    public static String parameter(String key, String value) {
        return "parameters { key: \"" + key + "\" value { string_value: \"" + value + "\" } }\n";
    }

    /** Waits until the request with an id waits in a model. */
    public void awaitWaiting(String id, String model) {
        Path waiting = gates.resolve(id + "." + model + ".waiting");
        Eventually.holds(id + " in " + model, SECONDS, () -> Files.exists(waiting));
    }

    /** Returns whether the request with an id has come to a model that it waits in. */
    public boolean isWaiting(String id, String model) {
        return Files.exists(gates.resolve(id + "." + model + ".waiting"));
    }

    /** Opens the gate of the request with an id in a model. */
    public void open(String id, String model) {
        try {
            Files.createFile(gates.resolve(id + "." + model + ".open"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
