package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.TextFormat;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Sends the recorded calls of the reference server over gRPC, as far as this server has their methods and their models,
 * and compares the answers. What may differ is listed in {@code docs/compatibility/deviations-grpc.txt}.
 */
class GrpcGoldenIT {
    @TempDir
    private Path folder;

    @Test
    void answersWhatTheReferenceAnswers() throws IOException, InterruptedException, TextFormat.ParseException {
        Path record = TestPlaces.shared("golden");
        Repository models = new Repository(folder);
        Set<String> absent = new HashSet<>();
        for (Path model : list(record.resolve("models"))) {
            if (isServed(model)) {
                models.copyOf(model);
            } else {
                absent.add(model.getFileName().toString());
            }
        }
        Map<Integer, String> accepted = accepted();
        List<String> problems = new ArrayList<>();
        int same = 0;
        try (TestServer server = TestServer.open(TestServer.of(models).start())) {
            ManagedChannel channel = server.grpc();
            for (GoldenCase one : GoldenCase.read(record.resolve("grpc.jsonl"), "grpc")) {
                if (!GoldenCall.isOurs(one)
                        || !one.isWhole()
                        || GoldenCall.model(one).filter(absent::contains).isPresent()) {
                    continue;
                }
                Optional<String> difference = GoldenCall.difference(one, channel);
                String excuse = accepted.remove(one.number());
                if (difference.isPresent() && excuse == null) {
                    problems.add("case " + one + ":\n" + difference.get());
                } else if (difference.isEmpty() && excuse != null) {
                    problems.add("no longer differs, strike it: " + excuse);
                } else if (difference.isEmpty()) {
                    same++;
                }
            }
            channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
        }
        accepted.values().forEach(line -> problems.add("not a case that is tried, strike it: " + line));

        assertThat(problems).as(String.join("\n\n", problems)).isEmpty();
        assertThat(same).isGreaterThan(90);
    }

    /** Returns the lines of the list of accepted differences by the number of their case. */
    private static Map<Integer, String> accepted() throws IOException {
        Map<Integer, String> lines = new TreeMap<>();
        for (String line :
                Files.readAllLines(TestPlaces.checkout().resolve("docs/compatibility/deviations-grpc.txt"))) {
            if (!line.isBlank() && !line.startsWith("#")) {
                String[] parts = line.split(" ", 3);
                assertThat(parts).as(line).hasSize(3);
                assertThat(lines.put(Integer.parseInt(parts[0]), line)).as(line).isNull();
            }
        }
        return lines;
    }

    /** Says whether a recorded model needs nothing but ONNX Runtime or the identity backend. */
    private static boolean isServed(Path model) throws IOException {
        Path file = model.resolve("config.pbtxt");
        if (!Files.exists(file)) {
            return true;
        }
        String config = Files.readString(file);
        return (config.contains("backend: \"identity\"") || config.contains("platform: \"onnxruntime_onnx\""))
                && !config.contains("sequence_batching");
    }

    private static List<Path> list(Path parent) throws IOException {
        try (Stream<Path> entries = Files.list(parent)) {
            return entries.sorted().toList();
        }
    }
}
