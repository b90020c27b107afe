package dev.nereid.server.lifecycle;

import com.code_intelligence.jazzer.junit.DictionaryEntries;
import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.nereid.repository.config.ConfigCompletion;
import dev.nereid.repository.config.ConfigNormalization;
import dev.nereid.repository.config.ConfigValidation;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.testkit.ReaderProbe;
import inference.ModelConfig;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;

/** Checks that any configuration is read, completed and checked, or refused. */
class ModelConfigFuzz {
    private static final int HEAP_PER_BYTE = 10_000;
    private static final int HEAP = 4 << 20;

    @FuzzTest
    @DictionaryEntries({
        "name: ",
        "platform: ",
        "backend: ",
        "max_batch_size: ",
        "input [ { ",
        "output { ",
        "data_type: TYPE_FP32",
        "dims: [ -1, 2 ]",
        "reshape { shape: [ ] }",
        "version_policy { specific { versions: 1 } }",
        "instance_group { kind: KIND_CPU count: 1 }",
        "dynamic_batching { }",
        "preferred_batch_size: ",
        "max_queue_delay_microseconds: ",
        "sequence_batching { direct { } }",
        "oldest { }",
        "control_input { }",
        "parameters { key: \"a\" value { string_value: \"b\" } }",
        "ensemble_scheduling { step { } }",
        "optimization { execution_accelerators { } }",
        "model_transaction_policy { decoupled: true }",
        "is_shape_tensor",
        "allow_ragged_batch: true",
        "batch_input { kind: BATCH_ELEMENT_COUNT }",
        "label_filename: ",
        "# ",
        "\\377",
        "[type.googleapis.com/inference.ModelConfig]",
        "0x",
        "inf",
        "-9223372036854775808"
    })
    void readsOrRefuses(byte[] bytes) {
        String text = new String(bytes, StandardCharsets.UTF_8);
        ReaderProbe probe = new ReaderProbe(0, (long) HEAP_PER_BYTE * bytes.length + HEAP);
        probe.run(memory -> {
            ModelConfig read = ModelConfigReader.parse("m/config.pbtxt", text);
            ModelConfig config =
                    ConfigNormalization.normalize(ConfigCompletion.fromFiles(read, "m", Set.of("model.onnx")));
            ConfigValidation.check(config, "m");
            ConfigValidation.checkTensors(config);
            ModelSettingsReader.settings(config, 1);
            ModelSettingsReader.batchingPolicy(config);
            ModelSettingsReader.description(config, List.of(1L));
        });
    }
}
