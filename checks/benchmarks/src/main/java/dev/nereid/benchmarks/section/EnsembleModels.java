package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.process.ModelRepositories;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Three steps that return their input, an ensemble of them, and the same model alone. Immutable.
 *
 * @param name the name of the ensemble; the others begin with it
 */
record EnsembleModels(String name) {
    static final int STEPS = 3;

    static final int MAX_BATCH = 8;

    private static final String TENSOR = "{ name: \"%s\" data_type: TYPE_FP32 dims: [ -1 ] }";

    /** Writes the four models, with more of the configuration for each step and the model alone. */
    EnsembleModels write(Path repository, String more) throws IOException {
        List<String> flow = new ArrayList<>();
        for (int i = 0; i < STEPS; i++) {
            String input = i == 0 ? "INPUT0" : "tensor" + i;
            String output = i == STEPS - 1 ? "OUTPUT0" : "tensor" + (i + 1);
            flow.add(step(steps().get(i), input, output));
            ModelRepositories.write(repository, steps().get(i), model("backend: \"identity\"", more));
        }
        ModelRepositories.write(repository, alone(), model("backend: \"identity\"", more));
        String steps = "ensemble_scheduling { step [ " + String.join(",\n", flow) + " ] }";
        ModelRepositories.write(repository, name, model("platform: \"ensemble\"", steps));
        return this;
    }

    private static String model(String kind, String more) {
        return kind + "\nmax_batch_size: " + MAX_BATCH + "\ninput [ " + TENSOR.formatted("INPUT0") + " ]\noutput [ "
                + TENSOR.formatted("OUTPUT0") + " ]\n" + more + "\n";
    }

    /** Returns the name of the model that is none of the steps, and is the same. */
    String alone() {
        return name + "_alone";
    }

    List<String> steps() {
        return List.of(name + "_step1", name + "_step2", name + "_step3");
    }

    private static String step(String model, String input, String output) {
        return """
            {
              model_name: "%s"
              model_version: -1
              input_map { key: "INPUT0" value: "%s" }
              output_map { key: "OUTPUT0" value: "%s" }
            }""".formatted(model, input, output);
    }
}
