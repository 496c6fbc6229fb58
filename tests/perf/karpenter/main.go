// Command solver runs Karpenter's own scheduler over pods from standard input and says what it would launch.
//
// Input is a JSON array of pods; output one line of JSON: seconds that the solving took (topology and scheduler are made
// anew for each run, and are counted), NodeClaims, USD an hour at the cheapest offering of each, and pods left over.
// Called by tests/perf/placement.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// As many as its own benchmark uses.
const concurrency = 5

type answer struct {
	Seconds  float64 `json:"seconds"`
	Nodes    int     `json:"nodes"`
	Price    float64 `json:"price"`
	Unplaced int     `json:"unplaced"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run reads the pods once and solves them as often as the first argument says (once without one); the best time counts.
func run() error {
	runs := 1
	if len(os.Args) > 1 {
		asked, err := strconv.Atoi(os.Args[1])
		if err != nil {
			return fmt.Errorf("runs: %w", err)
		}
		runs = asked
	}
	var pods []*corev1.Pod
	if err := json.NewDecoder(os.Stdin).Decode(&pods); err != nil {
		return fmt.Errorf("reading pods: %w", err)
	}
	log.SetLogger(logging.NopLogger)
	ctx := injection.WithControllerName(context.Background(), "provisioner")
	ctx = options.ToContext(ctx, &options.Options{
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		BatchMaxDuration:  10 * time.Second,
		FeatureGates:      options.FeatureGates{ReservedCapacity: true},
	})
	types, err := kwok.ConstructInstanceTypes(kwokoptions.ToContext(ctx, &kwokoptions.Options{}))
	if err != nil {
		return fmt.Errorf("instance types: %w", err)
	}
	best := answer{Seconds: math.Inf(1)}
	for range runs {
		found, err := solve(ctx, types, pods)
		if err != nil {
			return err
		}
		if found.Seconds < best.Seconds {
			best = found
		}
	}
	return json.NewEncoder(os.Stdout).Encode(best)
}

func nodePool() *karpenterv1.NodePool {
	only := func(key, value string) karpenterv1.NodeSelectorRequirementWithMinValues {
		return karpenterv1.NodeSelectorRequirementWithMinValues{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
		}
	}
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{
		Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default",
	}
	pool.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
		only(karpenterv1.CapacityTypeLabelKey, karpenterv1.CapacityTypeOnDemand),
		only(corev1.LabelOSStable, "linux"),
	}
	return pool
}

func solve(ctx context.Context, types []*cloudprovider.InstanceType, pods []*corev1.Pod) (answer, error) {
	pool := nodePool()
	pools := []*karpenterv1.NodePool{pool}
	catalogue := map[string][]*cloudprovider.InstanceType{pool.Name: types}
	client := fakeclient.NewClientBuilder().Build()
	realClock := clock.RealClock{}
	cluster := state.NewCluster(realClock, client, kwok.NewCloudProvider(ctx, client, types))
	parallel := scheduling.NumConcurrentReconciles(concurrency)

	began := time.Now()
	topology, err := scheduling.NewTopology(ctx, client, cluster, nil, pools, catalogue, pods, parallel)
	if err != nil {
		return answer{}, fmt.Errorf("topology: %w", err)
	}
	scheduler := scheduling.NewScheduler(
		ctx, client, pools, cluster, nil, topology, catalogue, nil,
		events.NewRecorder(&record.FakeRecorder{}), realClock, nil, nil, parallel,
	)
	results, err := scheduler.Solve(ctx, pods)
	if err != nil {
		return answer{}, fmt.Errorf("solving: %w", err)
	}
	seconds := time.Since(began).Seconds()

	found := answer{Seconds: seconds, Nodes: len(results.NewNodeClaims), Unplaced: len(results.PodErrors)}
	for _, claim := range results.NewNodeClaims {
		least := math.Inf(1)
		for _, kind := range claim.InstanceTypeOptions {
			offerings := kind.Offerings.Available().Compatible(claim.Requirements)
			if len(offerings) > 0 {
				least = math.Min(least, offerings.Cheapest().Price)
			}
		}
		found.Price += least
	}
	return found, nil
}
