package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.options.ServerOptions;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class FlagNoticesTest {
    private final EndpointFlags endpoints = new EndpointFlags();
    private final Flags flags = new Flags();

    FlagNoticesTest() {
        new ServerFlags().declare(flags);
        endpoints.declare(flags);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--reuse-http-port=true",
                "--reuse-grpc-port=1",
                "--grpc-infer-thread-count=8",
                "--grpc-infer-allocation-pool-size=16",
                "--grpc-http2-max-pings-without-data=0",
                "--grpc-http2-max-ping-strikes=2",
                "--repoagent-directory=agents",
                "--buffer-manager-thread-count=4",
                "--cuda-virtual-address-size=0:1073741824",
                "--trace-config=triton,file=trace.json",
                "--trace-file=trace.json",
                "--trace-level=TIMESTAMPS",
                "--trace-rate=1000",
                "--trace-count=-1",
                "--trace-log-frequency=0",
                "--sagemaker-port=8080",
                "--sagemaker-safe-port-range=8080-8090",
                "--sagemaker-thread-count=8",
                "--vertex-ai-port=8080",
                "--vertex-ai-thread-count=8",
                "--vertex-ai-default-model=simple"
            })
    void acceptsFlagsOfTheReferenceServerWithOneLine(String argument) throws UsageException {
        flags.read(List.of(argument), Map.of());

        String name = argument.substring(0, argument.indexOf('='));
        assertThat(flags.notices()).singleElement().asString().startsWith(name + ": accepted, without effect: ");
        assertThat(flags.help()).contains("  " + name);
    }

    @Test
    void saysNothingAboutFlagsWithEffectAndCloudEndpointsThatAreOff() throws UsageException {
        flags.read(
                List.of("--http-port=1", "--allow-sagemaker=false", "--allow-vertex-ai=0", "--metrics-port", "2"),
                Map.of("NEREID_GRPC_PORT", "3"));

        assertThat(flags.notices()).isEmpty();
        assertThat(endpoints.grpc.options.port).isEqualTo(3);
    }

    @Test
    void ignoresTheAddressesOfServicesOfKubernetes() throws UsageException {
        Map<String, String> environment = Map.of(
                "NEREID_HTTP_PORT", "tcp://10.0.0.1:8000",
                "NEREID_HTTP_PORT_8000_TCP", "tcp://10.0.0.1:8000",
                "NEREID_HTTP_PORT_8000_TCP_PORT", "8000",
                "NEREID_HTTP_PORT_8000_TCP_PROTO", "tcp",
                "NEREID_HTTP_PORT_8000_TCP_ADDR", "10.0.0.1",
                "NEREID_HTTP_SERVICE_HOST", "10.0.0.1",
                "NEREID_HTTP_SERVICE_PORT", "8000",
                "NEREID_HTTP_SERVICE_PORT_HTTP", "8000",
                "NEREID_PORT", "udp://10.0.0.2:53",
                "NEREID_SERVICE_HOST", "10.0.0.2");
        flags.read(List.of(), environment);
        flags.checkVariables(environment, flags.variables().toList());

        assertThat(endpoints.http.options.port).isEqualTo(8000);
        assertThat(flags.notices())
                .containsExactly("NEREID_HTTP_PORT: 'tcp://10.0.0.1:8000' ignored: the address of a Kubernetes Service"
                        + " (enableServiceLinks: false omits such variables)");
    }

    @Test
    void namesVariablesThatNoFlagHas() {
        Map<String, String> environment = Map.of(
                "NEREID_HTTP_PROT", "9000",
                "NEREID_COLOR_OF_THE_LOGO", "blue",
                "NEREID_JAVA_OPTIONS", "-Xmx1g",
                "NEREID_GRPC_PORT", "9001",
                "PATH", "/bin");
        flags.checkVariables(environment, flags.variables().toList());

        assertThat(flags.notices())
                .containsExactly(
                        "NEREID_COLOR_OF_THE_LOGO: ignored: no flag has this variable",
                        "NEREID_HTTP_PROT: ignored: no flag has this variable (did you mean NEREID_HTTP_PORT?)");
    }

    @Test
    void variablesWithSecretsAreForNoOtherProcess() {
        List<String> secrets = flags.variables()
                .filter(name -> name.contains("RESTRICTED") || name.contains("CACHE_CONFIG"))
                .toList();
        Map<String, String> environment = new HashMap<>(Map.of("PATH", "/bin"));
        secrets.forEach(name -> environment.put(name, "hidden"));

        assertThat(secrets)
                .contains("NEREID_HTTP_RESTRICTED_API", "NEREID_GRPC_RESTRICTED_PROTOCOL", "NEREID_CACHE_CONFIG");
        assertThat(ServerOptions.of(Path.of("models"))
                        .with(o -> o.environment = environment)
                        .environment())
                .isEqualTo(Map.of("PATH", "/bin"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"--strict-model-config=true", "--strict-model-config=false"})
    void readsStrictModelConfigurationsAsTheReferenceServer(String argument) throws UsageException {
        flags.read(List.of(argument), Map.of());

        assertThat(flags.notices())
                .containsExactly("--strict-model-config: has been deprecated! Please use"
                        + " '--disable-auto-complete-config' instead.");
    }
}
