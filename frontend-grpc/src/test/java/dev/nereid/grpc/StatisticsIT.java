package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static io.grpc.Status.Code.INVALID_ARGUMENT;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.testkit.FakeStatistics;
import inference.ModelStatisticsRequest;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class StatisticsIT {
    @AutoClose
    private final TestFrontend frontend = new TestFrontend();

    private String statistics(String name, String version) {
        return frontend.client
                .modelStatistics(ModelStatisticsRequest.newBuilder()
                        .setName(name)
                        .setVersion(version)
                        .build())
                .toString();
    }

    private List<String> versions(String name, String version) {
        return statistics(name, version)
                .lines()
                .filter(line -> line.startsWith("  name") || line.startsWith("  version"))
                .map(String::strip)
                .toList();
    }

    @Test
    void reportsStatistics() {
        frontend.server.setStatistics(
                List.of(FakeStatistics.of("a", 1, 6), FakeStatistics.of("a", 3, 0), FakeStatistics.of("b", 1, 2)));

        assertThat(versions("", ""))
                .containsExactly(
                        "name: \"a\"",
                        "version: \"1\"",
                        "name: \"a\"",
                        "version: \"3\"",
                        "name: \"b\"",
                        "version: \"1\"");
        assertThat(versions("a", "")).containsExactly("name: \"a\"", "version: \"1\"", "name: \"a\"", "version: \"3\"");
        assertThat(versions("a", "3")).containsExactly("name: \"a\"", "version: \"3\"");
    }

    @Test
    void fillsEveryField() {
        frontend.server.setStatistics(List.of(FakeStatistics.of("a", 1, 6)));

        assertThat(statistics("a", "1")).isEqualTo("""
                model_stats {
                  name: "a"
                  version: "1"
                  last_inference: 1795205332817
                  inference_count: 7
                  execution_count: 6
                  inference_stats {
                    success {
                      count: 4
                      ns: 1045713
                    }
                    fail {
                      count: 1
                      ns: 20
                    }
                    queue {
                      count: 4
                      ns: 676129
                    }
                    compute_input {
                      count: 4
                      ns: 30
                    }
                    compute_infer {
                      count: 4
                      ns: 346043
                    }
                    compute_output {
                      count: 4
                      ns: 40
                    }
                    cache_hit {
                    }
                    cache_miss {
                    }
                  }
                  batch_stats {
                    batch_size: 1
                    compute_input {
                    }
                    compute_infer {
                      count: 2
                      ns: 50
                    }
                    compute_output {
                    }
                  }
                  batch_stats {
                    batch_size: 5
                    compute_input {
                    }
                    compute_infer {
                    }
                    compute_output {
                    }
                  }
                  memory_usage {
                    type: "CPU"
                    byte_size: 1000
                  }
                  memory_usage {
                    type: "CPU_PINNED"
                    byte_size: 200
                  }
                  memory_usage {
                    type: "GPU"
                    id: 1
                    byte_size: 5000000000
                  }
                  response_stats {
                    key: "0"
                    value {
                      compute_infer {
                        count: 6
                        ns: 60
                      }
                      compute_output {
                        count: 5
                        ns: 50
                      }
                      success {
                        count: 4
                        ns: 40
                      }
                      fail {
                        count: 3
                        ns: 30
                      }
                      empty_response {
                        count: 2
                        ns: 20
                      }
                      cancel {
                        count: 1
                        ns: 10
                      }
                    }
                  }
                }
                """);
    }

    @Test
    void reportsNoOtherModel() {
        assertFails(() -> statistics("nope", ""), INVALID_ARGUMENT, "requested model 'nope' is not available");
        assertFails(
                () -> statistics("a", "abc"),
                INVALID_ARGUMENT,
                "failed to get model version from specified version string 'abc' (details: stol),"
                        + " version should be an integral value > 0");
    }
}
