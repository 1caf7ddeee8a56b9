// A client with the field names and integer types of the planner that Berth's fleet documents come
// from: encoding/json refuses 128.0 for an int, and with it the whole answer.
//
// go_client URL FLEET.json: plans the document with /optimizeOne, asks for what is known then and for
// the sizes of the first server, and prints all of it as one JSON object.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

type power struct {
	Idle     int     `json:"idle"`
	Full     int     `json:"full"`
	MidPower int     `json:"midPower"`
	MidUtil  float32 `json:"midUtil"`
}

type accelerator struct {
	Name         string  `json:"name"`
	Type         string  `json:"type"`
	Multiplicity int     `json:"multiplicity"`
	MemSize      int     `json:"memSize"`
	MemBW        int     `json:"memBW"`
	Power        power   `json:"power"`
	Cost         float32 `json:"cost"`
}

type capacities struct {
	Count []struct {
		Type  string `json:"type"`
		Count int    `json:"count"`
	} `json:"count"`
}

type models struct {
	Models []struct {
		Name         string             `json:"name"`
		Acc          string             `json:"acc"`
		AccCount     int                `json:"accCount"`
		MaxBatchSize int                `json:"maxBatchSize"`
		AtTokens     int                `json:"atTokens"`
		PerfParms    map[string]float32 `json:"perfParms"`
	} `json:"models"`
}

type classes struct {
	ServiceClasses []struct {
		Name         string `json:"name"`
		Priority     int    `json:"priority"`
		ModelTargets []struct {
			Model string  `json:"model"`
			ITL   float32 `json:"slo-itl"`
			TTFT  float32 `json:"slo-ttft"`
			TPS   float32 `json:"slo-tps"`
		} `json:"modelTargets"`
	} `json:"serviceClasses"`
}

type load struct {
	ArrivalRate  float32 `json:"arrivalRate"`
	AvgInTokens  int     `json:"avgInTokens"`
	AvgOutTokens int     `json:"avgOutTokens"`
}

type allocation struct {
	Accelerator string  `json:"accelerator"`
	NumReplicas int     `json:"numReplicas"`
	MaxBatch    int     `json:"maxBatch"`
	Cost        float32 `json:"cost"`
	ITLAverage  float32 `json:"itlAverage"`
	TTFTAverage float32 `json:"ttftAverage"`
	Load        load    `json:"load"`
}

type solution struct {
	Allocations map[string]allocation `json:"allocations"`
}

// What Berth says of one server, as far as these types go.
type size struct {
	Load       load                  `json:"load"`
	Current    allocation            `json:"current"`
	Candidates map[string]allocation `json:"candidates"`
	Best       string                `json:"best"`
}

type servers struct {
	Servers []struct {
		Name            string     `json:"name"`
		Class           string     `json:"class"`
		Model           string     `json:"model"`
		KeepAccelerator bool       `json:"keepAccelerator"`
		MinNumReplicas  int        `json:"minNumReplicas"`
		MaxBatchSize    int        `json:"maxBatchSize"`
		MaxQueueSize    int        `json:"maxQueueSize"`
		CurrentAlloc    allocation `json:"currentAlloc"`
		DesiredAlloc    allocation `json:"desiredAlloc"`
	} `json:"servers"`
}

func check(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "go_client: %s: %v\n", what, err)
		os.Exit(1)
	}
}

func decode(what string, response *http.Response, err error, to interface{}) {
	check(what, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(what, err)
	if response.StatusCode != http.StatusOK {
		check(what, fmt.Errorf("%s: %s", response.Status, body))
	}
	check(what, json.Unmarshal(body, to))
}

func get(url string, to interface{}) {
	response, err := http.Get(url)
	decode(url, response, err, to)
}

func main() {
	url := os.Args[1]
	document, err := os.ReadFile(os.Args[2])
	check(os.Args[2], err)
	body, err := json.Marshal(map[string]json.RawMessage{"system": document})
	check(os.Args[2], err)
	var all struct {
		Solution     solution
		Accelerators []accelerator
		Capacities   capacities
		Names        []string
		Models       models
		Classes      classes
		Servers      servers
		Size, Moved  size
		Move         allocation
	}
	response, err := http.Post(url+"/optimizeOne", "application/json", bytes.NewReader(body))
	decode("/optimizeOne", response, err, &all.Solution)
	get(url+"/getAccelerators", &all.Accelerators)
	get(url+"/getCapacities", &all.Capacities)
	get(url+"/getModels", &all.Names)
	get(url+"/getModel/"+all.Names[0], &all.Models)
	get(url+"/getServiceClasses", &all.Classes)
	get(url+"/getServers", &all.Servers)
	server := url + "/v1/servers/" + all.Servers.Servers[0].Name
	ask := func(path string, question interface{}, to interface{}) {
		body, err := json.Marshal(question)
		check(path, err)
		response, err := http.Post(server+path, "application/json", bytes.NewReader(body))
		decode(path, response, err, to)
	}
	ask("/size", struct{}{}, &all.Size)
	// What the fleet has with a fraction of a token is rounded for integers, too.
	moved := all.Size.Candidates[all.Size.Best]
	moved.NumReplicas++
	ask("/size", map[string]interface{}{"currentAlloc": moved,
		"load": map[string]float64{"avgInTokens": 700.25}}, &all.Moved)
	ask("/reallocate", map[string]string{"accelerator": all.Size.Best}, &all.Move)
	check("stdout", json.NewEncoder(os.Stdout).Encode(all))
}
