package dev.nereid.distribution.pipelines;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.meeting.MeetingFunction;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStatistics;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How the requests of many clients go through the ensemble of the reference documents. */
class PictureBatchesIT {
    private static final List<String> STEPS =
            List.of("image_preprocess_model", "classification_model", "segmentation_model");
    private static final int CLIENTS = 64;
    private static final int REQUESTS = 480;
    private static final int DIRECT = 20;
    private static final long TIMEOUT_SECONDS = 120;

    @TempDir
    private Path directory;

    /** The steps of different requests share batches, while direct requests to each step are served. */
    @Test
    void manyClientsShareTheBatchesOfEachStep() throws Exception {
        try (Examples examples = Examples.serve()) {
            List<ShapePicture> pictures = ShapePicture.all();
            Map<String, ModelStatistics> before = new HashMap<>();
            STEPS.forEach(step -> before.put(step, examples.statistics(step)));

            Clients clients = new Clients(examples, pictures);
            clients.start();
            byte[] tensor = new byte[0];
            for (int i = 0; i < DIRECT; i++) {
                tensor = examples.infer(
                                Examples.Protocol.HTTP,
                                Examples.picture(
                                        STEPS.get(0),
                                        "RAW_IMAGE",
                                        pictures.get(i).file()))
                        .get("PREPROCESSED_OUTPUT");
                for (String step : STEPS.subList(1, 3)) {
                    ClientRequest direct =
                            ClientRequest.of(step).input("FORMATTED_IMAGE", "FP32", tensor, 1, 3, 224, 224);
                    assertThat(examples.infer(Examples.Protocol.HTTP, direct)).hasSize(1);
                }
            }
            assertThat(clients.end.get(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isEqualTo(REQUESTS);

            for (String step : STEPS) {
                ModelStatistics after = examples.statistics(step);
                assertThat(after.getInferenceCount() - before.get(step).getInferenceCount())
                        .as(step)
                        .isEqualTo(REQUESTS + DIRECT);
                assertThat(Examples.meanBatch(before.get(step), after)).as(step).isGreaterThanOrEqualTo(4);
            }
            assertThat(examples.statistics("ensemble_model").getInferenceCount())
                    .isEqualTo(REQUESTS);
        }
    }

    /** The two networks are executed at the same time: each waits until the other has begun. */
    @Test
    void independentStepsOverlapInTime() throws Exception {
        Path examples = TestPaths.checkout().resolve("examples/pipeline-models");
        Repository models = new Repository(directory.resolve("models"))
                .copyOf(examples.resolve("ensemble_model"))
                .copyOf(examples.resolve(STEPS.get(0)));
        for (int i = 1; i < STEPS.size(); i++) {
            String config = Files.readString(examples.resolve(STEPS.get(i)).resolve("config.pbtxt"))
                    .replace("\"onnxruntime\"", "\"meeting\"")
                    .replaceAll("label_filename.*", "")
                    .replaceAll("(?m)^parameters.*$", "");
            String other = STEPS.get(3 - i);
            models.model(
                    STEPS.get(i), config + "parameters { key: \"other\" value { string_value: \"" + other + "\" } }\n");
        }
        Path plugins = GatedPlugin.pack(directory.resolve("plugins"), MeetingFunction.class);
        try (Examples server = Examples.of(TestServer.open(
                NereidServer.start(TestServer.of(models).withPlugins(plugins, TestPaths.plugins()[1]))))) {
            byte[] file = ShapePicture.all().getFirst().file();
            server.infer(Examples.Protocol.GRPC, Examples.picture("ensemble_model", "IMAGE", file));
        }

        long[] classification = times(models, STEPS.get(1));
        long[] segmentation = times(models, STEPS.get(2));
        assertThat(classification[0]).isLessThan(segmentation[1]);
        assertThat(segmentation[0]).isLessThan(classification[1]);
    }

    private static long[] times(Repository models, String model) throws IOException {
        String[] text = Files.readString(models.directory().resolve(model).resolve("times"))
                .split(" ", -1);
        return new long[] {Long.parseLong(text[0]), Long.parseLong(text[1])};
    }

    /** Clients over gRPC that each send the next request when they have their response. Safe for use by any thread. */
    private static final class Clients {
        final CompletableFuture<Integer> end = new CompletableFuture<>();
        private final GRPCInferenceServiceGrpc.GRPCInferenceServiceStub stub;
        private final List<ModelInferRequest> requests = new ArrayList<>();
        private final AtomicInteger sent = new AtomicInteger();
        private final AtomicInteger completed = new AtomicInteger();

        Clients(Examples examples, List<ShapePicture> pictures) {
            stub = GRPCInferenceServiceGrpc.newStub(examples.channel());
            for (ShapePicture picture : pictures) {
                requests.add(Examples.picture("ensemble_model", "IMAGE", picture.file())
                        .overGrpc());
            }
        }

        void start() {
            for (int i = 0; i < CLIENTS; i++) {
                next();
            }
        }

        private void next() {
            int number = sent.getAndIncrement();
            if (number < REQUESTS) {
                stub.modelInfer(requests.get(number % requests.size()), new Responses());
            }
        }

        private final class Responses implements StreamObserver<ModelInferResponse> {
            @Override
            public void onNext(ModelInferResponse response) {
                if (response.getRawOutputContents(0).size() != 1000 * Float.BYTES) {
                    end.completeExceptionally(new AssertionError(response.getOutputsList()));
                }
            }

            @Override
            public void onError(Throwable failure) {
                end.completeExceptionally(failure);
            }

            @Override
            public void onCompleted() {
                if (completed.incrementAndGet() == REQUESTS) {
                    end.complete(REQUESTS);
                }
                next();
            }
        }
    }
}
